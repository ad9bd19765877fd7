// What two runs must have in common to have the same result.
#pragma once

#include <map>
#include <string>

#include "scenarios/scenario.h"

namespace spes::scenarios {

// 32 hexadecimal digits: XXH3-128 of the resolved text of everything but name, transport, output,
// workers and devices. Files and corpora count by their content, not by their names (files above
// 1 GiB by their size and 1024 pieces of 64 KiB, evenly spaced). Whether ResolveCorpora was called
// before makes no difference; throws as it does, and std::runtime_error when a file cannot be read.
std::string ScenarioHash(const Scenario& scenario);

// The same for many scenarios: files whose digests are in `known`, by name, are not read again.
using FileDigests = std::map<std::string, std::string>;
std::string ScenarioHash(const Scenario& scenario, FileDigests& known);

}  // namespace spes::scenarios
