// A run of which nothing is left to do.
#pragma once

#include <string>

namespace spes::app {

// Of NAME.h5 and the NAME.from-ROUND.h5 beside it, one that says that the run is complete and ended
// in the world with this hash: others are of earlier runs. Empty: none does. `log`: NAME.h5.
std::string CompleteLogOf(const std::string& log, const std::string& world_hash);

}  // namespace spes::app
