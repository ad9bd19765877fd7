// From a scenario to the hosts and links of the simulation.
#pragma once

#include <vector>

#include "scenarios/scenario.h"
#include "sim/topology.h"

namespace spes::scenarios {

// N, the nodes that train: the sum of the groups, or nodes.count without groups.
int NodeCount(const Scenario& scenario);

// [N] speeds relative to nodes.compute.
std::vector<double> NodeSpeeds(const Scenario& scenario);

// Hosts 0 to N − 1 are the nodes ("node 0", …), host N the coordinator ("coordinator"). Throws
// std::invalid_argument with one line when a pair of sites has no path or two that contradict each
// other, and as sim::Topology::Validate. The scenario must be resolved (resolve.h), as one that was
// read is.
sim::Topology BuildTopology(const Scenario& scenario);

}  // namespace spes::scenarios
