// From a scenario to what goes wrong in its run.
#pragma once

#include "scenarios/origins.h"
#include "scenarios/scenario.h"
#include "trainer/runtime/fault_plan.h"

namespace spes::scenarios {

// Whether anything does.
bool HasFaults(const Scenario& scenario);

// As Validate, which calls it: faults that can be, of nodes that are there, and none that the run
// could not end with.
void ValidateFaults(const Scenario& scenario, const Origins& origins);

// Random ones never end. Throws std::invalid_argument where ValidateFaults would.
trainer::FaultPlanConfig BuildFaults(const Scenario& scenario);

}  // namespace spes::scenarios
