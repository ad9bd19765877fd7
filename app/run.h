// A run from scenario to summary, simulated or on real machines.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/event_log.h"
#include "scenarios/scenario.h"

namespace spes::app {

struct RunOptions {
  bool quiet = false;   // no output but errors
  bool resume = false;  // go on with what the journal has; real runs always do
  // Of a run on real machines: where the coordinator listens (HOST:PORT), and the nodes inside its
  // process. Without an address: on this machine, with a process for each node.
  std::string serve;
  std::vector<int> trains;
  EventLogOptions log = {};
};

// Trains the scenario: log, worlds, progress line and summary. Returns the exit code: 0, or 128 +
// the signal that ended it early (the log is whole then, with the status "interrupted"). Throws
// std::invalid_argument on settings that cannot be and std::runtime_error on a failure underway
// (the log then says "failed"); where standard error holds events, the failure is one of them, and
// its exit code is returned.
int Run(scenarios::Scenario scenario, const RunOptions& options);

}  // namespace spes::app
