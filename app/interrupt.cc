#include "app/interrupt.h"

#include <csignal>

namespace spes::app {

namespace {

// A signal handler can reach nothing but objects of static storage.
std::atomic<std::atomic<bool>*> interrupted{nullptr};
std::atomic<int> received{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void OnSignal(int signal) {
  received = signal;
  *interrupted.load() = true;
}

}  // namespace

void InstallInterruptHandlers(std::atomic<bool>& flag) {
  interrupted = &flag;
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

int InterruptSignal() { return received; }

}  // namespace spes::app
