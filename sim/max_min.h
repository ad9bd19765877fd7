// Weighted max-min fair shares: how links divide themselves among the flows that cross them.
#pragma once

#include <span>
#include <vector>

namespace spes::sim {

struct MaxMinFlow {
  std::vector<int> links;  // indices of the capacities, each at most once
  double weight = 1;       // positive; a flow of weight 2 gets what two flows of weight 1 get
};

// The rate of each flow (size of `flows`), in the unit of `capacities`. Progressive filling (D.
// Bertsekas, R. Gallager, Data Networks, 2nd ed., section 6.5.2): all rates grow in proportion to
// the weights; when a link is full its flows are frozen, and the others grow on. A flow without
// links gets infinity. O(links × (links + flows)) at worst.
std::vector<double> MaxMinRates(std::span<const double> capacities,
                                std::span<const MaxMinFlow> flows);

}  // namespace spes::sim
