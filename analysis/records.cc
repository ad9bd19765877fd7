#include "analysis/records.h"

#include <stdexcept>

namespace spes::analysis {

std::string Name(RunStatus status) {
  switch (status) {
    case RunStatus::kRunning:
      return "running";
    case RunStatus::kComplete:
      return "complete";
    case RunStatus::kInterrupted:
      return "interrupted";
    case RunStatus::kFailed:
      return "failed";
  }
  throw std::logic_error("unknown run status");
}

}  // namespace spes::analysis
