// The version of this program, as in the root CMakeLists.txt.
#pragma once

#include <string>

namespace spes::analysis {

std::string ProgramVersion();

}  // namespace spes::analysis
