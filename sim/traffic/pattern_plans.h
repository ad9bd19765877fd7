// The plan of each exchange pattern, for patterns.cc, and what they are built with.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/traffic/patterns.h"

namespace spes::sim {

// The exchange must have passed the checks of MakePlan.
TrafficPlan CoordinatorsPlan(const Exchange& exchange);
TrafficPlan RingPlan(const Exchange& exchange);
TrafficPlan DirectPlan(const Exchange& exchange);
TrafficPlan TreePlan(const Exchange& exchange);

// Part `k` of `bytes` cut in `parts` that differ by one byte at most and add up to it.
inline std::int64_t PartOf(std::int64_t bytes, int parts, int k) {
  return bytes / parts + (k < bytes % parts ? 1 : 0);
}

// Builds a plan transfer by transfer.
class PlanBuilder {
 public:
  static constexpr int kNothing = -1;  // in place of a transfer that was left out

  // Returns its number; kNothing, and no transfer, when it has no bytes or stays within a host.
  // Entries of `after` may be kNothing.
  int Send(int from, int to, std::int64_t bytes, std::vector<int> after = {}) {
    if (bytes == 0 || from == to) return kNothing;
    return Add({from, to, bytes, std::move(after)});
  }

  // What can start at `host` when all of `after` has arrived.
  int Joint(int host, std::vector<int> after) { return Add({host, host, 0, std::move(after)}); }

  TrafficPlan Take() { return std::move(plan_); }

 private:
  int Add(Transfer transfer) {
    std::erase(transfer.after, kNothing);
    plan_.transfers.push_back(std::move(transfer));
    return static_cast<int>(plan_.transfers.size()) - 1;
  }

  TrafficPlan plan_;
};

}  // namespace spes::sim
