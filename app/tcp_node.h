// One node of a run on real machines.
#pragma once

#include <optional>
#include <string>

#include "app/event_log.h"
#include "scenarios/scenario.h"

namespace spes::app {

struct JoinSetup {
  std::string address;      // of the coordinator, HOST:PORT
  std::optional<int> node;  // nothing: the coordinator chooses
  bool quiet = false;
  EventLogOptions log = {};
};

// Trains as the coordinator orders until the run is over. Goes on with what it has kept in its part
// of the journal folder. Returns the exit code: 0, or 128 + the signal that ended it early, after a
// word to the coordinator. Throws std::invalid_argument when it is not let in or its settings
// cannot be used, std::runtime_error on a failure underway; where standard error holds events, the
// failure is one of them, and its exit code is returned.
int RunTcpNode(scenarios::Scenario scenario, const JoinSetup& setup);

}  // namespace spes::app
