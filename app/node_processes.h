// The nodes of a run as processes of this machine.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "app/terminal.h"
#include "scenarios/scenario.h"

namespace spes::app {

// They end with this process, whatever ends it. What each says goes to node-K.txt in the journal's
// folder, and what it said in an earlier run to node-K.txt.old; the scenario that all read goes to
// scenario.yaml.
class NodeProcesses {
 public:
  // Starts every node of the scenario but those of `without`; they join the coordinator at
  // `address`. `token`: what lets them in, kept in a file that only this user can read as long as
  // they run; empty: as the scenario says. Throws std::runtime_error, one line, when a process
  // cannot be started.
  NodeProcesses(const scenarios::Scenario& scenario, const std::string& address,
                const std::string& folder, const std::vector<int>& without,
                const std::string& token, ProgressDisplay& display);
  // Asks them to end in good order; after some seconds they are killed.
  ~NodeProcesses();
  NodeProcesses(const NodeProcesses&) = delete;
  NodeProcesses& operator=(const NodeProcesses&) = delete;

  // Starts anew whoever was ended by a signal, each time after a longer pause. `round`: the last
  // one published. `may_end`: whether this node may end with an error while the run goes on. Throws
  // std::runtime_error, one line, when a node has failed for a reason of its own, or was ended by
  // signals too often while no round was published.
  void Tend(std::int32_t round, const std::function<bool(int node)>& may_end);

 private:
  using Clock = std::chrono::steady_clock;
  struct Process {
    int node;
    pid_t pid = -1;  // −1: none at the moment
    bool over = false;
    int signals = 0;         // that have ended it …
    std::int32_t round = 0;  // … since this one was published
    Clock::time_point start_at = {};
  };
  void Start(Process& process) const;
  std::string Text(int node) const;

  std::string address_, folder_, scenario_, token_file_;
  ProgressDisplay& display_;
  std::vector<Process> processes_;
};

}  // namespace spes::app
