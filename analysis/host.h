// The machine a run took place on.
#pragma once

#include <string>

namespace spes::analysis {

// One line: name, operating system, processor, number of cores. Parts that cannot be found out are
// left away.
std::string HostDescription();

}  // namespace spes::analysis
