#include "sim/path_memory.h"

#include <algorithm>

namespace spes::sim {

WarmStart AfterIdle(const PathMemory& memory, Time now, double initial_window) {
  WarmStart start{memory.window, memory.threshold};
  Time idle = now - memory.end - memory.timeout;
  if (idle <= Time{0}) return start;
  start.threshold = std::max(start.threshold, 0.75 * memory.window);
  const double least = std::min(initial_window, memory.window);
  while (idle > Time{0} && start.window > least) {
    start.window /= 2;
    idle -= memory.timeout;
  }
  start.window = std::max(start.window, least);
  return start;
}

}  // namespace spes::sim
