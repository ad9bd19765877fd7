// The network of a scenario, at the level of detail that it asks for.
#pragma once

#include <memory>

#include "scenarios/scenario.h"
#include "sim/network.h"

namespace spes::app {

// network.tcp with the seed of this run.
sim::TcpConfig RunTcp(const scenarios::Scenario& scenario);

// With the traffic of others in it. Throws std::invalid_argument with one line when this program
// was built without ns-3 and the level needs it.
std::unique_ptr<sim::Network> MakeNetwork(const scenarios::Scenario& scenario,
                                          const sim::Topology& topology);

}  // namespace spes::app
