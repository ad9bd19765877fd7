#include "tests/kernel/tun_relay.h"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>

#include <algorithm>

#include "sim/netns/tunnel.h"

namespace spes::kernel {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kLate = 1'000'000;
constexpr int kBatch = 32;  // packets taken before looking whether others are due

std::int64_t Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

sim::Descriptor OpenTun(const std::string& device, const sim::Namespace& space,
                        const std::string& address) {
  // Room for more than a second at any rate we can carry: a burst is the sender's right.
  return sim::OpenTunnel(space, {.device = device, .address = address, .queue_length = 100'000});
}

}  // namespace

TunRelay::TunRelay(const std::string& device, const sim::Namespace& a, const std::string& address_a,
                   const sim::Namespace& b, const std::string& address_b, sim::Time one_way)
    : one_way_(one_way),
      a_(OpenTun(device, a, address_a)),
      b_(OpenTun(device, b, address_b)),
      timer_(sim::Check(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC), "a timer")),
      stop_(sim::Check(eventfd(0, EFD_CLOEXEC), "an event")),
      wake_(sim::Check(epoll_create1(EPOLL_CLOEXEC), "epoll")),
      directions_{Direction{a_.get(), b_.get(), {}}, Direction{b_.get(), a_.get(), {}}} {
  for (const sim::Descriptor* file : {&a_, &b_, &timer_, &stop_}) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = file->get()}};
    sim::Check(epoll_ctl(wake_.get(), EPOLL_CTL_ADD, file->get(), &event), "epoll");
  }
  thread_ = std::thread([this] {
    // Ahead of other programs, or their time slices would be jitter. Where that is not allowed the
    // delay is less exact, which counts().late shows.
    const sched_param priority{.sched_priority = 1};
    sched_setscheduler(0, SCHED_RR, &priority);
    try {
      Loop();
    } catch (...) {
      error_ = std::current_exception();
    }
    ended_ = true;
  });
}

TunRelay::~TunRelay() {
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

TunRelay::Counts TunRelay::counts() const {
  if (ended_ && error_) std::rethrow_exception(error_);
  return {.packets = packets_, .dropped = dropped_, .late = late_};
}

void TunRelay::Loop() {
  for (;;) {
    std::array<epoll_event, 4> events;
    const int n = epoll_wait(wake_.get(), events.data(), events.size(), -1);
    if (n < 0 && errno == EINTR) continue;
    sim::Check(n, "epoll");
    for (int i = 0; i < n; ++i) {
      if (events[i].data.fd == stop_.get()) return;
    }
    for (bool more = true; more;) {
      more = false;
      for (Direction& direction : directions_) more |= Take(direction);
      for (Direction& direction : directions_) Give(direction);
    }
    Rest();
  }
}

// Takes some packets from the kernel; false when there are no more.
bool TunRelay::Take(Direction& direction) {
  for (int i = 0; i < kBatch; ++i) {
    Packet& packet = direction.waiting.emplace_back();
    const ssize_t size = read(direction.from, packet.bytes.data(), packet.bytes.size());
    if (size < 0) {
      direction.waiting.pop_back();
      if (errno == EAGAIN) return false;
      sim::Check(size, "reading from a TUN device");
    }
    packet.size = static_cast<int>(size);
    packet.due = Now() + one_way_.count();
  }
  return true;
}

// Delivers what is due.
void TunRelay::Give(Direction& direction) {
  std::deque<Packet>& waiting = direction.waiting;
  while (!waiting.empty()) {
    const Packet& packet = waiting.front();
    const std::int64_t late = Now() - packet.due;
    if (late < 0) return;
    late_ += late > kLate;
    const bool delivered = write(direction.to, packet.bytes.data(), packet.size) == packet.size;
    ++(delivered ? packets_ : dropped_);
    waiting.pop_front();
  }
}

// Sets the timer to the next packet's time.
void TunRelay::Rest() {
  std::int64_t next = 0;
  for (const Direction& direction : directions_) {
    if (direction.waiting.empty()) continue;
    const std::int64_t due = direction.waiting.front().due;
    next = next == 0 ? due : std::min(next, due);
  }
  // Zero stops the timer. Setting it also forgets that it has gone off.
  const itimerspec when{.it_interval = {}, .it_value = {next / kSecond, next % kSecond}};
  sim::Check(timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr), "a timer");
}

}  // namespace spes::kernel
