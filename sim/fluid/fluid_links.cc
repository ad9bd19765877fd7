#include "sim/fluid/fluid_links.h"

#include <algorithm>
#include <cmath>

namespace spes::sim {

FluidLinks::FluidLinks(const LinkGraph& graph, double efficiency, Drains* control, Drains* bulk)
    : graph_(graph),
      efficiency_(efficiency),
      control_(*control),
      bulk_(*bulk),
      uses_(graph.links().size(), 0),
      rate_(graph.links().size(), 0.0),
      taken_(graph.links().size(), 0.0),
      down_since_(graph.links().size(), Time{0}) {}

void FluidLinks::Use(std::span<const int> route, Time now) {
  for (const int link : route) {
    if (++uses_[link] > 1) continue;
    Read(link, now);
    down_since_[link] = now;
  }
}

void FluidLinks::Release(std::span<const int> route) {
  for (const int link : route) {
    if (--uses_[link] == 0) changes_.Clear(link);
  }
}

std::vector<FluidLinks::Changed> FluidLinks::Change(Time now) {
  std::vector<Changed> changes;
  while (changes_.next() <= now) {
    const int link = changes_.first();
    const double before = rate_[link];
    Read(link, now);
    const double after = rate_[link];
    if (before > 0 && after == 0) down_since_[link] = now;
    changes.push_back({.link = link,
                       .delay = graph_.links()[link].NextDelayChange(now - Time(1)) == now,
                       .narrower = after > 0 && after < before,
                       .outage = before == 0 && after > 0 ? now - down_since_[link] : Time{0}});
  }
  return changes;
}

void FluidLinks::Read(int link, Time now) {
  const Link& l = graph_.links()[link];
  rate_[link] = l.rate.At(now) * efficiency_ / 8e9;
  SetCapacity(link);
  changes_.Set(link, std::min(l.rate.NextChange(now), l.NextDelayChange(now)));
}

void FluidLinks::SetCapacity(int link) {
  control_.SetCapacity(link, rate_[link]);
  bulk_.SetCapacity(link, std::max(0.0, rate_[link] - taken_[link]));
}

void FluidLinks::SetTaken(std::vector<std::pair<int, double>> taken) {
  for (const auto& [link, rate] : taken_by_) taken_[link] = 0;
  for (const auto& [link, rate] : taken) taken_[link] += rate;
  std::swap(taken, taken_by_);
  for (const auto& [link, rate] : taken) SetCapacity(link);
  for (const auto& [link, rate] : taken_by_) SetCapacity(link);
}

double FluidLinks::WaitNs(int link) const {
  const Link& l = graph_.links()[link];
  return rate_[link] > 0 ? l.queue_bytes * efficiency_ / rate_[link] : l.queue_bytes * 8e9 / l.bps;
}

void FluidLinks::AddUsage(const FlowResult& result, double loss, double ack_bytes,
                          std::vector<LinkUsage>* usage) const {
  const Flow& flow = result.flow;
  double passing = 1;  // of the packets sent
  for (const int link : graph_.Route(flow.from, flow.to)) {
    LinkUsage& used = (*usage)[link];
    used.wire_bytes += std::llround(static_cast<double>(result.wire_bytes) * passing);
    const double lost = passing * graph_.links()[link].loss;
    if (lost > 0) {
      used.dropped_packets +=
          std::llround(static_cast<double>(result.dropped_packets) * (lost / loss));
    }
    passing -= lost;
  }
  const std::int64_t acks = std::llround(ack_bytes);
  if (acks == 0) return;
  for (const int link : graph_.Route(flow.to, flow.from)) (*usage)[link].wire_bytes += acks;
}

}  // namespace spes::sim
