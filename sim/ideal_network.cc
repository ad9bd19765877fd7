#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sim/max_min.h"
#include "sim/network.h"

namespace spes::sim {
namespace {

// A flow first waits for half its round trip, then drains at its share of the links: what has
// drained is at the receiver.
class IdealNetwork : public Network {
 public:
  IdealNetwork(const Topology& topology, const TcpConfig& tcp) : graph_(topology, tcp) {
    for (const Link& link : graph_.links()) capacities_.push_back(link.bps);
  }

  Time Now() const override { return now_; }

  void Prepare(int from, int to, int streams) override {
    CheckFlow({.from = from, .to = to, .streams = streams}, graph_);
  }

  FlowId Start(const Flow& flow, OnDone done) override {
    CheckFlow(flow, graph_);
    const FlowId id = next_id_++;
    Active& active = flows_[id];
    active.result = {.id = id, .flow = flow, .start = now_, .rtt_min = {}, .rtt_mean = {}};
    active.done = std::move(done);
    active.next = now_ + graph_.Rtt(flow.from, flow.to) / 2;
    active.left = static_cast<double>(flow.bytes);
    return id;
  }

  void Cancel(FlowId id) override {
    const auto found = flows_.find(id);
    if (found == flows_.end()) return;
    Active& active = found->second;
    const double drained = static_cast<double>(active.result.flow.bytes) - LeftNow(active);
    active.result.delivered_bytes = static_cast<std::int64_t>(drained);
    End(found, FlowOutcome::kCancelled);
    Share();
  }

  std::optional<Time> NextEvent() const override {
    if (!ended_.empty()) return now_;
    if (flows_.empty()) return std::nullopt;
    return NextChange();
  }

  Time AdvanceTo(Time t) override {
    if (t < now_) throw std::logic_error("virtual time cannot go back");
    for (;;) {
      if (!ended_.empty()) {
        Report();
        if (now_ < t) return now_;
      } else if (const Time next = NextChange(); next <= t && !flows_.empty()) {
        now_ = next;
        Change();
      } else {
        if (t != kNever) now_ = t;
        return now_;
      }
    }
  }

  const LinkGraph& graph() const override { return graph_; }

  std::vector<LinkUsage> Usage() const override {
    std::vector<LinkUsage> usage(graph_.links().size());
    return usage;
  }

 private:
  struct Active {
    FlowResult result;
    OnDone done;
    bool draining = false;
    Time next{0};     // when the first byte arrives; while it drains, when the last one does
    Time anchor{0};   // since when `rate` holds
    double left = 0;  // bytes not yet drained at `anchor`
    double rate = 0;  // bit/s
  };

  double LeftNow(const Active& active) const {
    if (!active.draining) return active.left;
    const double drained = active.rate / 8 * ToSeconds(now_ - active.anchor);
    return std::max(0.0, active.left - drained);
  }

  Time NextChange() const {
    Time next = kNever;
    for (const auto& [id, active] : flows_) next = std::min(next, active.next);
    return next;
  }

  // What is due at now_: first bytes arrive, last bytes arrive.
  void Change() {
    for (auto it = flows_.begin(); it != flows_.end();) {
      const auto current = it++;
      Active& active = current->second;
      if (active.next > now_) continue;
      if (active.draining || active.result.flow.bytes == 0) {
        active.result.delivered_bytes = active.result.flow.bytes;
        End(current, FlowOutcome::kDone);
      } else {
        active.draining = true;
        active.anchor = now_;
      }
    }
    Share();
  }

  void End(std::map<FlowId, Active>::iterator flow, FlowOutcome outcome) {
    FlowResult& result = flow->second.result;
    result.outcome = outcome;
    result.end = now_;
    result.wire_bytes = result.delivered_bytes;
    ended_.emplace_back(std::move(flow->second.done), result);
    flows_.erase(flow);
  }

  // Divides the links anew. A flow whose rate stays keeps its end, so that rounding cannot add up.
  void Share() {
    std::vector<Active*> draining;
    std::vector<MaxMinFlow> shares;
    for (auto& [id, active] : flows_) {
      if (!active.draining) continue;
      const Flow& flow = active.result.flow;
      draining.push_back(&active);
      shares.push_back(
          {.links = graph_.Route(flow.from, flow.to), .weight = static_cast<double>(flow.streams)});
    }
    const std::vector<double> rates = MaxMinRates(capacities_, shares);
    for (std::size_t i = 0; i < draining.size(); ++i) {
      Active& active = *draining[i];
      if (rates[i] == active.rate) continue;
      active.left = LeftNow(active);
      active.anchor = now_;
      active.rate = rates[i];
      const double ns = std::ceil(active.left * 8e9 / active.rate);
      const double most = static_cast<double>((kNever - now_).count());
      active.next = ns < most ? now_ + Time(static_cast<std::int64_t>(ns)) : kNever;
    }
  }

  // Each flow leaves the list before its `done` runs: `done` may start and cancel flows, and throw.
  void Report() {
    while (!ended_.empty()) {
      const auto [done, result] = std::move(ended_.front());
      ended_.pop_front();
      if (done) done(result);
    }
  }

  const LinkGraph graph_;
  std::vector<double> capacities_;
  Time now_{0};
  FlowId next_id_ = 1;
  std::map<FlowId, Active> flows_;
  std::deque<std::pair<OnDone, FlowResult>> ended_;
};

}  // namespace

std::unique_ptr<Network> MakeIdealNetwork(const Topology& topology, const TcpConfig& tcp) {
  return std::make_unique<IdealNetwork>(topology, tcp);
}

}  // namespace spes::sim
