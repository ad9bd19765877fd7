// From a scenario to what its steps cost.
#pragma once

#include "scenarios/scenario.h"
#include "trainer/cost/cost_model.h"

namespace spes::scenarios {

// The virtual duration of every step of every node. With compute.kind measured its step_time must
// have been filled in.
trainer::CostModel BuildCostModel(const Scenario& scenario);

}  // namespace spes::scenarios
