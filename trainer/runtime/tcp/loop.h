// The one thread of a real run: its clock, timers, and call-backs in order.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "sim/units.h"
#include "trainer/protocol/runtime.h"
#include "trainer/runtime/compute_pool.h"
#include "trainer/runtime/tcp/asio.h"
#include "trainer/runtime/tcp/tcp_runtime.h"

namespace spes::trainer {

// Everything but Stop belongs to the thread that calls Run. Exceptions of what it runs reach the
// caller of Run or RunUntil; it can be run again afterwards.
class Loop {
 public:
  explicit Loop(ComputePool& pool);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  asio::io_context& io() { return io_; }

  // As Runtime has them.
  sim::Time Now() const { return base_ + (std::chrono::steady_clock::now() - since_); }
  void SetNow(sim::Time now);
  Runtime::TimerId After(sim::Time d, std::function<void()> f);
  void Cancel(Runtime::TimerId id) { timers_.erase(id); }
  void Compute(std::function<void()> work, sim::Time charged, std::function<void()> done);
  void Work(const std::function<void()>& work);

  // A call-back of the protocol's: later, one after the other, in this order.
  void Call(std::function<void()> f);

  // Called after each call-back of the protocol's, and before each `tick`.
  void BetweenCalls(std::function<void()> f) { between_ = std::move(f); }
  // Called about every 0.1 s, whenever the loop runs. `passed`: s since the last, at most 1: while
  // the loop was not running nobody had the chance to be heard.
  void OnTick(std::function<void(double passed)> f) { on_tick_ = std::move(f); }

  // See TcpRuntime.
  void Run(const std::function<bool()>& until, const std::function<void()>& tick);
  void Stop();

  // Until `done` is true or `most` has passed; looks at least every 0.1 s, and after every event.
  void RunUntil(const std::function<bool()>& done, Seconds most);

 private:
  // Where the pool's threads leave what is finished; outlives the loop if need be.
  struct Mailbox {
    std::mutex mutex;
    asio::io_context* io;
  };

  void OnTimer(Runtime::TimerId id, const std::function<void()>& f);
  void Tick();
  void AskForDrain();
  void Drain();
  void Called();

  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  ComputePool& pool_;
  std::shared_ptr<Mailbox> mailbox_;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  sim::Time base_{0};
  Runtime::TimerId last_timer_ = 0;
  std::map<Runtime::TimerId, asio::steady_timer> timers_;
  std::deque<std::function<void()>> calls_;
  bool drains_ = false;  // Drain has been asked for
  bool works_ = false;   // within Work
  std::function<void()> between_;
  std::function<void(double)> on_tick_;
  asio::steady_timer tick_;
  std::chrono::steady_clock::time_point last_tick_ = since_;
  std::function<void()> user_tick_;  // within Run
  bool called_ = false;              // something that may have changed what `until` says
  std::atomic<bool> stopped_ = false;
};

// The part of TcpRuntime that is the loop's. Base: TcpServer or TcpClient.
template <class Base>
class OnLoop : public Base {
 public:
  explicit OnLoop(ComputePool& pool) : loop_(pool) {}

  sim::Time Now() const override { return loop_.Now(); }
  void SetNow(sim::Time now) override { loop_.SetNow(now); }
  Runtime::TimerId After(sim::Time d, std::function<void()> f) override {
    return loop_.After(d, std::move(f));
  }
  void Cancel(Runtime::TimerId id) override { loop_.Cancel(id); }
  void Compute(std::function<void()> work, sim::Time charged, std::function<void()> done) override {
    loop_.Compute(std::move(work), charged, std::move(done));
  }
  void Work(const std::function<void()>& work) override { loop_.Work(work); }
  void Run(const std::function<bool()>& until, const std::function<void()>& tick) override {
    loop_.Run(until, tick);
  }
  void Stop() override { loop_.Stop(); }

 protected:
  Loop loop_;
};

}  // namespace spes::trainer
