// What two runs must have in common to have the same result.
#pragma once

#include <map>
#include <string>

#include "scenarios/scenario.h"

namespace spes::scenarios {

// `text`: the resolved scenario as PrintScenario writes it, but with name, transport, output,
// workers and devices as in a scenario that names none, without a measured step time, and with
// digests of files in the place of their names. Files and corpora so count by their content (files
// above 1 GiB by their size and 1024 pieces of 64 KiB, evenly spaced). `hash`: 32 hexadecimal
// digits, XXH3-128 of it.
struct ScenarioIdentity {
  std::string text, hash;
};

// Whether ResolveCorpora was called before makes no difference; throws as it does, and
// std::runtime_error when a file cannot be read. Files whose digests are in `known`, by name, are
// not read again.
using FileDigests = std::map<std::string, std::string>;
ScenarioIdentity IdentityOf(const Scenario& scenario, FileDigests& known);
ScenarioIdentity IdentityOf(const Scenario& scenario);

// Its hash alone.
std::string ScenarioHash(const Scenario& scenario);

}  // namespace spes::scenarios
