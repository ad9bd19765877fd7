// A scenario as YAML text.
#pragma once

#include <string>

#include "scenarios/scenario.h"

namespace spes::scenarios {

// Every field with its unit, but for sections that have no effect (conditions: {}). ParseScenario
// reads it back to the same scenario, from any folder.
std::string PrintScenario(const Scenario& scenario);

// The value of one key (a dotted path) as it is printed; of a list of values, all of them with
// commas between. Empty for a key that holds sections, or that does not exist.
std::string PrintValue(const Scenario& scenario, const std::string& key);

}  // namespace spes::scenarios
