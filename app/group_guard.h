// Process groups that must not outlive this process.
#pragma once

#include <sys/types.h>

#include "sim/netns/descriptor.h"

namespace spes::app {

// A process of its own that kills the groups when this one ends, whatever ends it: a death signal
// reaches children alone, not what they have started.
class GroupGuard {
 public:
  // Throws std::runtime_error, one line, when no process can be started.
  GroupGuard();
  // Kills what is left.
  ~GroupGuard();
  GroupGuard(const GroupGuard&) = delete;
  GroupGuard& operator=(const GroupGuard&) = delete;

  void Add(pid_t group);
  // To be called while the number is still the group's.
  void Remove(pid_t group);

 private:
  sim::Descriptor tell_;
  pid_t guard_ = -1;
};

}  // namespace spes::app
