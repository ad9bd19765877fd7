// The subcommand plan: what rounds will take, without training.
#pragma once

#include <cstdint>
#include <string>

#include "scenarios/scenario.h"

namespace spes::app {

// Times `rounds` full rounds of the scenario and prints them, `format`: text or csv. Reads no data
// and allocates no parameters. While it takes long and somebody looks on, it says how far it is.
// Returns the exit code. Throws std::invalid_argument when the scenario leaves open what a step
// costs or ends rounds without waiting for all nodes.
int Plan(const scenarios::Scenario& scenario, std::int32_t rounds, const std::string& format);

}  // namespace spes::app
