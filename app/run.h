// A simulated run from scenario to summary.
#pragma once

#include "scenarios/scenario.h"

namespace spes::app {

// Trains the scenario on simulated nodes: log, worlds, progress line and summary. `quiet`: no
// output but errors. Returns the exit code: 0, or 128 + the signal that ended it early (the log is
// whole then, with the status "interrupted"). Throws std::invalid_argument on settings that cannot
// be and std::runtime_error on a failure underway (the log then says "failed").
int Run(scenarios::Scenario scenario, bool quiet);

}  // namespace spes::app
