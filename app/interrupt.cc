#include "app/interrupt.h"

#include <csignal>

namespace spes::app {

namespace {

// A signal handler can reach nothing but objects of static storage.
std::atomic<bool> interrupted{false};
std::atomic<int> received{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void OnSignal(int signal) {
  received = signal;
  interrupted = true;
}

}  // namespace

const std::atomic<bool>& InstallInterruptHandlers() {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return interrupted;
}

int InterruptSignal() { return received; }

}  // namespace spes::app
