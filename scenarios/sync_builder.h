// From a scenario to the settings of the protocol.
#pragma once

#include <string>
#include <vector>

#include "scenarios/origins.h"
#include "scenarios/scenario.h"
#include "trainer/protocol/coordinator.h"
#include "trainer/protocol/peer.h"
#include "trainer/sync/allocation.h"

namespace spes::scenarios {

// "0-3,7" → 0, 1, 2, 3, 7. Throws std::invalid_argument, one line, on anything else, on a node
// that is not below `nodes` and on one that comes twice.
std::vector<int> ParseNodes(const std::string& text, int nodes);

// As Validate, which calls it: what `sync` asks for goes together.
void ValidateSync(const Scenario& scenario, const Origins& origins);

trainer::ScheduleConfig BuildSchedule(const Scenario& scenario);
trainer::AllocationConfig BuildAllocationConfig(const Scenario& scenario);

// [node]: upload rates of the access links, and what memory leaves for experts.
std::vector<trainer::NodeCapacity> BuildCapacities(const Scenario& scenario,
                                                   const trainer::BlockTable& table);

// The allocation of the first round.
trainer::Allocation BuildAllocation(const Scenario& scenario, const trainer::BlockTable& table);

// With a step count for the decay of the learning rate.
trainer::OptimizerConfig BuildOptimizer(const Scenario& scenario);

// All but `scenario_hash`, `run`, `charge`, `journal` and `trust.held_out`.
trainer::CoordinatorConfig BuildCoordinatorConfig(const Scenario& scenario,
                                                  const trainer::BlockTable& table);

// All but `scenario_hash`, `world_hash` and `step_time`.
trainer::PeerConfig BuildPeerConfig(const Scenario& scenario, int node);

}  // namespace spes::scenarios
