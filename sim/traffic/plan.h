// An exchange of parameters as what the network sees of it: transfers, and which wait for which.
#pragma once

#include <cstdint>
#include <vector>

namespace spes::sim {

// From host to host (indices of Topology::hosts). It starts when its sender is ready and all
// transfers of `after` have arrived. One from a host to itself is a joint: it has 0 bytes, crosses
// no link and takes no time, so that m transfers which wait for n others need n + m dependencies
// instead of n × m.
struct Transfer {
  int from = 0;
  int to = 0;
  std::int64_t bytes = 0;
  std::vector<int> after;  // indices of TrafficPlan::transfers, before or behind this one
};

struct TrafficPlan {
  std::vector<Transfer> transfers;
};

// Throws std::invalid_argument with one line that names the transfer by its number (from 0) and
// what is wrong: a host outside [0, hosts), a negative size, a joint with bytes, a dependency that
// is no transfer, transfers that wait for each other. O(transfers + dependencies).
void Validate(const TrafficPlan& plan, int hosts);

// Payload bytes that each host sends and receives in the whole plan. [hosts]; the plan must be
// valid.
struct HostBytes {
  std::int64_t up = 0, down = 0;
};
std::vector<HostBytes> BytesOfHosts(const TrafficPlan& plan, int hosts);

}  // namespace spes::sim
