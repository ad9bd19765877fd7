// The protocol over an event loop without a network: every message takes the same time, unless the
// test's script holds, changes, repeats or drops it.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "sim/event_loop.h"
#include "trainer/protocol/runtime.h"

namespace spes::trainer {

class ScriptedRuntime {
 public:
  // Called for each message; returns after how long it arrives, kNever: not at all. May change it.
  using Script = std::function<sim::Time(NodeId from, NodeId to, Message& message)>;
  using Handler = std::function<void(NodeId from, const Message&)>;

  Runtime& endpoint(NodeId id) {
    auto& endpoint = endpoints_[id];
    if (!endpoint) endpoint = std::make_unique<Endpoint>(*this, id);
    return *endpoint;
  }
  void Connect(NodeId id, Handler handler) { handlers_[id] = std::move(handler); }
  void Deliver(NodeId from, NodeId to, const Message& message) { handlers_[to](from, message); }
  // Everything that is on its way between the two is lost.
  void Cut(NodeId a, NodeId b) { ++cuts_[{std::min(a, b), std::max(a, b)}]; }

  sim::EventLoop loop;
  Script script = [](NodeId, NodeId, Message&) { return std::chrono::milliseconds(10); };

 private:
  class Endpoint final : public Runtime {
   public:
    Endpoint(ScriptedRuntime& all, NodeId id) : all_(all), id_(id) {}
    sim::Time Now() const override { return all_.loop.Now(); }
    TimerId After(sim::Time d, std::function<void()> f) override {
      return all_.loop.After(d, std::move(f));
    }
    void Cancel(TimerId id) override { all_.loop.Cancel(id); }
    void Send(NodeId to, Message message, std::int64_t, std::function<void()> delivered) override {
      const sim::Time delay = all_.script(id_, to, message);
      if (delay == sim::kNever) return;
      int& cuts = all_.cuts_[{std::min(id_, to), std::max(id_, to)}];
      all_.loop.After(delay, [this, to, &cuts, then = cuts, message = std::move(message),
                              delivered = std::move(delivered)] {
        if (cuts != then) return;
        all_.Deliver(id_, to, message);
        if (delivered && cuts == then) delivered();
      });
    }
    void Compute(std::function<void()> work, sim::Time charged,
                 std::function<void()> done) override {
      work();
      After(charged, std::move(done));
    }

   private:
    ScriptedRuntime& all_;
    NodeId id_;
  };

  std::map<NodeId, std::unique_ptr<Endpoint>> endpoints_;
  std::map<NodeId, Handler> handlers_;
  std::map<std::pair<NodeId, NodeId>, int> cuts_;
};

}  // namespace spes::trainer
