#include "sim/max_min.h"

#include <algorithm>
#include <limits>

namespace spes::sim {

std::vector<double> MaxMinRates(std::span<const double> capacities,
                                std::span<const MaxMinFlow> flows) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<double> rates(flows.size(), kInfinity);
  std::vector<double> left(capacities.begin(), capacities.end());  // not taken by frozen flows
  std::vector<double> weight(capacities.size(), 0);                // of flows that still grow
  std::vector<std::vector<int>> crossing(capacities.size());
  for (int f = 0; f < static_cast<int>(flows.size()); ++f) {
    for (const int link : flows[f].links) {
      weight[link] += flows[f].weight;
      crossing[link].push_back(f);
    }
  }
  double last_level = 0;
  for (;;) {
    int tightest = -1;
    double level = kInfinity;  // rate per unit of weight at which the next link is full
    for (int link = 0; link < static_cast<int>(capacities.size()); ++link) {
      if (crossing[link].empty()) continue;
      // Levels never fall; rounding must not make them, or a share could come out as 0.
      const double full_at = std::max(last_level, left[link] / weight[link]);
      if (full_at < level) {
        level = full_at;
        tightest = link;
      }
    }
    if (tightest < 0) return rates;
    last_level = level;
    const std::vector<int> full = std::move(crossing[tightest]);
    crossing[tightest].clear();
    for (const int f : full) {
      rates[f] = level * flows[f].weight;
      for (const int link : flows[f].links) {
        left[link] -= rates[f];
        weight[link] -= flows[f].weight;
        if (link != tightest) std::erase(crossing[link], f);
      }
    }
  }
}

}  // namespace spes::sim
