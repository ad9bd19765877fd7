// A scenario as YAML text.
#pragma once

#include <string>

#include "scenarios/scenario.h"

namespace spes::scenarios {

// Every field with its unit, but for sections that have no effect (conditions: {}). ParseScenario
// reads it back to the same scenario, from any folder.
std::string PrintScenario(const Scenario& scenario);

}  // namespace spes::scenarios
