// From a scenario to what its steps cost.
#pragma once

#include "scenarios/scenario.h"
#include "trainer/cost/cost_model.h"

namespace spes::scenarios {

// The virtual duration of every step of every node. With compute.kind measured its step_time must
// have been filled in.
trainer::CostModel BuildCostModel(const Scenario& scenario);

// Of an evaluation on `tokens` tokens at speed 1: a third of what training on as many takes, for it
// is the pass forward alone. The same holds of measured costs.
sim::Time EvaluationTime(const Scenario& scenario, std::int64_t tokens);

}  // namespace spes::scenarios
