// Traffic of others: TCP transfers that share the links with those of the run.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/network.h"
#include "sim/units.h"

namespace spes::sim {

// Transfers from one host to another, one after the other.
struct BackgroundFlow {
  int from = 0;
  int to = 0;
  int streams = 1;
  std::int64_t bytes = 0;  // of a transfer; 0: it never ends
  // After each transfer: the mean of an exponential distribution, and one such pause before the
  // first. Endless ones have none.
  Time mean_pause = std::chrono::seconds(5);
};

// `network` with this traffic in it. It runs whenever virtual time passes, but is not heard of: to
// Start, Cancel, NextEvent and the results of flows it does not exist, only links are the fuller,
// and Usage counts it. A transfer that fails or stalls is begun again, after a pause of at least a
// second. Pauses are drawn from `seed`, for each of `flows` on its own. Throws
// std::invalid_argument as Network::Start, and on a negative pause.
std::unique_ptr<Network> MakeBackground(std::unique_ptr<Network> network,
                                        const std::vector<BackgroundFlow>& flows,
                                        std::uint64_t seed);

}  // namespace spes::sim
