// What must hold between the fields of the network.
#pragma once

#include "scenarios/origins.h"
#include "scenarios/scenario.h"

namespace spes::scenarios {

// As Validate, which calls it: traces that can be read, conditions that can be, paths between all
// who need one.
void ValidateNetwork(const Scenario& scenario, const Origins& origins);

}  // namespace spes::scenarios
