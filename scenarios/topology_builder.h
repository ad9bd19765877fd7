// From a scenario to the hosts and links of the simulation.
#pragma once

#include <vector>

#include "scenarios/scenario.h"
#include "sim/background.h"
#include "sim/topology.h"

namespace spes::scenarios {

// N, the nodes that train: the sum of the groups, or nodes.count without groups.
int NodeCount(const Scenario& scenario);

// [N] speeds relative to nodes.compute.
std::vector<double> NodeSpeeds(const Scenario& scenario);

// Hosts 0 to N − 1 are the nodes ("node 0", …), host N the coordinator ("coordinator"), and behind
// it a sender and a receiver for each entry of network.background ("background 0 sender",
// "background 0 receiver", …), then the further coordinators of network.exchange ("coordinator 2",
// …). Reads the files of traces. The scenario must be resolved
// (resolve.h), as one that was read is; whether the network is whole is sim::LinkGraph's to say.
// Throws std::invalid_argument as ReadCapacityTrace.
sim::Topology BuildTopology(const Scenario& scenario);

// The traffic between the background's hosts of that topology.
std::vector<sim::BackgroundFlow> BuildBackground(const Scenario& scenario);

}  // namespace spes::scenarios
