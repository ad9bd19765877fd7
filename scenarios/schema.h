// The JSON schema of scenario files, for editors.
#pragma once

#include <string>

namespace spes::scenarios {

// Draft 07: keys, types, limits, names to choose from, docstrings and defaults.
std::string ScenarioSchema();

}  // namespace spes::scenarios
