// An emulated network from its start to its end.
#pragma once

#include <string>
#include <vector>

#include "sim/topology.h"

namespace spes::app {

struct WanPlan {
  std::string name;        // of the scenario
  sim::Topology topology;  // nodes 0 to N − 1, and the coordinator as the last host
  sim::TcpConfig tcp;
  std::string prefix;                // of the namespaces' names
  std::vector<int> hosts;            // that run the command
  std::vector<std::string> command;  // program and arguments; empty: until interrupted
  bool halt_on_failure = false;      // of one host's command: all are ended

  int coordinator() const { return static_cast<int>(topology.hosts.size()) - 1; }
  // What its commands find in SPES_HOST: "3", or "coordinator".
  std::string HostName(int host) const;
};

// Returns the exit code. Throws std::invalid_argument where this program was built without ns-3 or
// there is no such command, std::runtime_error where the machine cannot do it or a command did not
// end with 0.
int RunWan(const WanPlan& plan);

}  // namespace spes::app
