// A runtime over another one.
#pragma once

#include <functional>
#include <utility>

#include "trainer/protocol/runtime.h"

namespace spes::trainer {

// As the one below it, but for what a test overrides.
class RuntimeAbove : public Runtime {
 public:
  explicit RuntimeAbove(Runtime& below) : below_(below) {}
  sim::Time Now() const override { return below_.Now(); }
  TimerId After(sim::Time d, std::function<void()> f) override {
    return below_.After(d, std::move(f));
  }
  void Cancel(TimerId id) override { below_.Cancel(id); }
  void Send(NodeId to, Message m, std::int64_t bytes, std::function<void()> d) override {
    below_.Send(to, std::move(m), bytes, std::move(d));
  }
  void Compute(std::function<void()> work, sim::Time charged, std::function<void()> done) override {
    below_.Compute(std::move(work), charged, std::move(done));
  }

 protected:
  Runtime& below_;
};

}  // namespace spes::trainer
