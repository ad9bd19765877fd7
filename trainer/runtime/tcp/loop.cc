#include "trainer/runtime/tcp/loop.h"

#include <algorithm>
#include <csignal>
#include <exception>
#include <future>
#include <utility>

namespace spes::trainer {

namespace {
constexpr std::chrono::milliseconds kTick{100};
constexpr std::chrono::hours kLongest{24 * 3650};  // clocks would overflow
}  // namespace

Loop::Loop(ComputePool& pool)
    : work_(asio::make_work_guard(io_)),
      pool_(pool),
      mailbox_(std::make_shared<Mailbox>()),
      tick_(io_) {
  mailbox_->io = &io_;
  // TLS writes to sockets whose other side may be gone: that is an error like others.
  std::signal(SIGPIPE, SIG_IGN);
  Tick();
}

Loop::~Loop() {
  const std::lock_guard lock(mailbox_->mutex);
  mailbox_->io = nullptr;
}

void Loop::SetNow(sim::Time now) {
  base_ = now;
  since_ = std::chrono::steady_clock::now();
}

Runtime::TimerId Loop::After(sim::Time d, std::function<void()> f) {
  const Runtime::TimerId id = ++last_timer_;
  asio::steady_timer& timer =
      timers_
          .emplace(std::piecewise_construct, std::forward_as_tuple(id), std::forward_as_tuple(io_))
          .first->second;
  timer.expires_after(std::min<sim::Time>(d, kLongest));
  timer.async_wait([this, id, f = std::move(f)](const asio::error_code&) {
    if (works_) return Call([this, id, f] { OnTimer(id, f); });
    OnTimer(id, f);
    Called();
  });
  return id;
}

void Loop::OnTimer(Runtime::TimerId id, const std::function<void()>& f) {
  if (timers_.erase(id) > 0) f();  // otherwise it has been cancelled
}

void Loop::Compute(std::function<void()> work, sim::Time charged, std::function<void()> done) {
  const sim::Time due = Now() + charged;
  const auto until = std::chrono::steady_clock::now() + charged;
  auto finished = [this, until, done = std::move(done)](const std::exception_ptr& error) {
    if (error) std::rethrow_exception(error);
    const auto rest = until - std::chrono::steady_clock::now();
    After(std::max<sim::Time>(rest, sim::Time{0}), done);
  };
  pool_.Submit(due, [mailbox = mailbox_, work = std::move(work), finished = std::move(finished)] {
    std::exception_ptr error;
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mailbox->mutex);
    if (mailbox->io) asio::post(*mailbox->io, [finished, error] { finished(error); });
  });
}

// The thread that runs the loop goes on with everything but call-backs.
void Loop::Work(const std::function<void()>& work) {
  std::atomic<bool> over = false;
  const auto at_end = [&] {
    over = true;
    asio::post(io_, [] {});
  };
  std::future<void> result = std::async(std::launch::async, [&] {
    const std::shared_ptr<void> end(nullptr, [&](void*) { at_end(); });
    work();
  });
  {
    works_ = true;
    const std::shared_ptr<void> end(nullptr, [this](void*) { works_ = false; });
    while (!over) io_.run_one();
  }
  AskForDrain();
  result.get();
}

void Loop::Call(std::function<void()> f) {
  calls_.push_back(std::move(f));
  AskForDrain();
}

void Loop::AskForDrain() {
  if (drains_ || works_ || calls_.empty()) return;
  drains_ = true;
  asio::post(io_, [this] { Drain(); });
}

// One call for each event of the loop, so that an exception loses nothing.
void Loop::Drain() {
  drains_ = false;
  if (works_) return;
  const std::function<void()> f = std::move(calls_.front());
  calls_.pop_front();
  AskForDrain();
  f();
  Called();
}

void Loop::Called() {
  called_ = true;
  if (between_) between_();
}

void Loop::Tick() {
  tick_.expires_after(kTick);
  tick_.async_wait([this](const asio::error_code& error) {
    if (error) return;
    Tick();
    const auto now = std::chrono::steady_clock::now();
    const double passed = std::chrono::duration<double>(now - last_tick_).count();
    last_tick_ = now;
    if (on_tick_) on_tick_(std::min(passed, 1.0));
    Called();
    if (user_tick_) user_tick_();
  });
}

void Loop::Run(const std::function<bool()>& until, const std::function<void()>& tick) {
  struct Reset {
    std::function<void()>& tick;
    ~Reset() { tick = nullptr; }
  } reset{user_tick_};
  user_tick_ = tick;
  while (!stopped_) {
    io_.run_one();
    if (std::exchange(called_, false) && until && until()) return;
  }
}

void Loop::Stop() {
  stopped_ = true;
  asio::post(io_, [] {});
}

void Loop::RunUntil(const std::function<bool()>& done, Seconds most) {
  const auto until = std::chrono::steady_clock::now() +
                     std::chrono::duration_cast<std::chrono::steady_clock::duration>(most);
  while (!done() && std::chrono::steady_clock::now() < until) io_.run_one_for(kTick);
}

}  // namespace spes::trainer
