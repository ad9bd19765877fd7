// What `transport` asks for goes together.
#pragma once

#include "scenarios/origins.h"
#include "scenarios/scenario.h"

namespace spes::scenarios {

// As Validate, which calls it.
void ValidateTransport(const Scenario& scenario, const Origins& origins);

}  // namespace spes::scenarios
