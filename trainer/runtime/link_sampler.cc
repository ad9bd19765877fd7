#include "trainer/runtime/link_sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace spes::trainer {

LinkSampler::LinkSampler(std::unique_ptr<sim::Network> network, analysis::Recorder& recorder,
                         std::optional<sim::Time> every)
    : network_(std::move(network)),
      recorder_(recorder),
      every_(every),
      counted_(network_->graph().links().size()) {}

bool LinkSampler::Sample() {
  const sim::Time now = Now();
  if (now == since_) return false;
  const auto ns = [](sim::Time t) { return static_cast<double>(t.count()); };
  const std::vector<sim::LinkUsage> usage = network_->Usage();
  const std::vector<sim::Link>& links = graph().links();
  bool any = false;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const std::int64_t wire_bytes = usage[i].wire_bytes - counted_[i].wire_bytes;
    const std::int64_t dropped = usage[i].dropped_packets - counted_[i].dropped_packets;
    if (wire_bytes == 0 && dropped == 0) continue;
    const sim::RateCurve& rate = links[i].rate;
    const double capacity = rate.BytesBy(ns(now)) - rate.BytesBy(ns(since_));
    analysis::LinkRecord row;
    row.start_s = sim::ToSeconds(since_);
    row.end_s = sim::ToSeconds(now);
    row.link = static_cast<std::int32_t>(i);
    row.name = links[i].name;
    row.capacity_bytes = std::llround(capacity);
    row.wire_bytes = wire_bytes;
    row.utilisation = capacity > 0 ? static_cast<double>(wire_bytes) / capacity
                                   : std::numeric_limits<double>::quiet_NaN();
    row.dropped_packets = dropped;
    recorder_.Record(row);
    counted_[i] = usage[i];
    any = true;
  }
  since_ = now;
  return any;
}

sim::Time LinkSampler::AdvanceTo(sim::Time t) {
  const bool active = NextEvent().has_value();
  if (!every_ || !(active || (moving_ && t != sim::kNever))) return network_->AdvanceTo(t);
  if (!moving_) Sample();  // ends the silence
  moving_ = true;
  const sim::Time due = (Now() / *every_ + 1) * *every_;
  const sim::Time reached = network_->AdvanceTo(std::min(t, due));
  // After the last flow, until nothing moves: acknowledgements are still on their way.
  if (reached == due) moving_ = Sample();
  return reached;
}

}  // namespace spes::trainer
