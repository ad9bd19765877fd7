// A network whose flows do not meet: each takes its bytes in microseconds, unless the script says
// otherwise.
#pragma once

#include <functional>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sim/network.h"

namespace spes::sim {

class ScriptedNetwork final : public Network {
 public:
  // How a flow ends, and after how long.
  struct Fate {
    Time lasts{0};
    FlowOutcome outcome = FlowOutcome::kDone;
  };
  std::function<Fate(const Flow&)> script = [](const Flow& flow) {
    return Fate{std::chrono::microseconds(flow.bytes)};
  };
  std::vector<Flow> started;
  std::vector<std::pair<int, int>> prepared;

  Time Now() const override { return now_; }
  void Prepare(int from, int to, int) override { prepared.emplace_back(from, to); }
  FlowId Start(const Flow& flow, OnDone done) override {
    started.push_back(flow);
    const Fate fate = script(flow);
    FlowResult result{.flow = flow, .start = now_, .rtt_min = {}, .rtt_mean = {}};
    result.id = next_++;
    result.end = now_ + fate.lasts;
    result.outcome = fate.outcome;
    if (fate.outcome == FlowOutcome::kDone) result.delivered_bytes = flow.bytes;
    due_.emplace(result.id, result.end);
    flows_.emplace(std::pair(result.end, result.id), std::pair(result, std::move(done)));
    return result.id;
  }
  void Cancel(FlowId id) override {
    const auto due = due_.find(id);
    if (due == due_.end()) return;
    auto flow = flows_.extract({due->second, id});
    flow.mapped().first.outcome = FlowOutcome::kCancelled;
    flow.mapped().first.end = now_;
    flow.key().first = now_;
    due->second = now_;
    flows_.insert(std::move(flow));
  }
  std::optional<Time> NextEvent() const override {
    if (flows_.empty()) return std::nullopt;
    return flows_.begin()->first.first;
  }
  Time AdvanceTo(Time t) override {
    if (flows_.empty() || flows_.begin()->first.first > t) return now_ = t == kNever ? now_ : t;
    auto flow = flows_.extract(flows_.begin());
    now_ = flow.key().first;
    due_.erase(flow.key().second);
    if (flow.mapped().second) flow.mapped().second(flow.mapped().first);
    return now_;
  }
  const LinkGraph& graph() const override { throw std::logic_error("no links in this network"); }
  std::vector<LinkUsage> Usage() const override { return {}; }

 private:
  Time now_{0};
  FlowId next_ = 1;
  std::map<FlowId, Time> due_;
  std::map<std::pair<Time, FlowId>, std::pair<FlowResult, OnDone>> flows_;
};

}  // namespace spes::sim
