#include "app/interrupt.h"

#include <time.h>

#include <csignal>

namespace spes::app {

namespace {

// Of one request: `timeout`, and some shells, signal the process and then its group.
constexpr std::int64_t kSameRequestNs = 500'000'000;

// A signal handler can reach nothing but objects of static storage.
std::atomic<bool> interrupted{false};
std::atomic<int> received{0};
std::atomic<std::int64_t> received_at{0};  // ns of the monotonic clock
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free &&
              std::atomic<std::int64_t>::is_always_lock_free);

void OnSignal(int signal) {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  const std::int64_t now = time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
  if (received == 0) {
    received_at = now;
    received = signal;
    interrupted = true;
  } else if (now - received_at > kSameRequestNs) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

std::atomic<bool>& InstallInterruptHandlers() {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return interrupted;
}

int InterruptSignal() { return received; }

}  // namespace spes::app
