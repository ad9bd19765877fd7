// A command in the network namespaces of several hosts at once.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/group_guard.h"
#include "sim/netns/descriptor.h"
#include "sim/netns/namespace.h"

namespace spes::app {

// Where and with what a command is started.
struct HostToRun {
  std::string name;  // before each line of its output
  const sim::Namespace& space;
  std::vector<std::pair<std::string, std::string>> environment;  // added to ours
};

// The processes end with this one, whatever ends it. Each has a process group of its own, and what
// is left of the group when the process, or this one, ends is killed.
class HostProcesses {
 public:
  // `command`: the program, looked for as a shell does, and its arguments. Starts it for every
  // host. Throws std::invalid_argument where there is no such program.
  HostProcesses(const std::vector<HostToRun>& hosts, const std::vector<std::string>& command);
  // Kills what is still there.
  ~HostProcesses();
  HostProcesses(const HostProcesses&) = delete;
  HostProcesses& operator=(const HostProcesses&) = delete;

  // Prints what they have said, line by line, on standard output; waits for it at most so long.
  void Pump(std::chrono::milliseconds longest);
  // Whether all have ended.
  bool Done() const;
  // Asks the groups to end in good order, and kills them when called again after some seconds.
  void Stop();

  // "node 0 ended with 1, …": those that did not end with 0; empty where all did.
  std::string Failures() const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Process {
    std::string name;
    pid_t pid = -1;
    sim::Descriptor output;
    std::string line = {};           // what was said of the line so far
    std::optional<int> status = {};  // once it has ended
  };

  void Read(Process& process);
  void Reap();

  GroupGuard guard_;
  std::vector<Process> processes_;
  std::optional<Clock::time_point> asked_;  // to end
};

}  // namespace spes::app
