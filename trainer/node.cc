#include "trainer/node.h"

#include <algorithm>

namespace spes::trainer {

void RoutingCounts::Add(const RoutingCounts& other) {
  tokens += other.tokens;
  routed.resize(std::max(routed.size(), other.routed.size()));
  entropy_sum.resize(std::max(entropy_sum.size(), other.entropy_sum.size()), 0.0);
  for (std::size_t layer = 0; layer < other.routed.size(); ++layer) {
    const std::vector<std::int64_t>& from = other.routed[layer];
    std::vector<std::int64_t>& to = routed[layer];
    to.resize(std::max(to.size(), from.size()), 0);
    for (std::size_t e = 0; e < from.size(); ++e) to[e] += from[e];
  }
  for (std::size_t layer = 0; layer < other.entropy_sum.size(); ++layer) {
    entropy_sum[layer] += other.entropy_sum[layer];
  }
}

}  // namespace spes::trainer
