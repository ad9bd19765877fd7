#include "analysis/version.h"

namespace spes::analysis {

std::string ProgramVersion() { return SPES_VERSION; }

}  // namespace spes::analysis
