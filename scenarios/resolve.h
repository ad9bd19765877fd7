// Fills in what a scenario leaves to be found out.
#pragma once

#include <string>
#include <vector>

#include "scenarios/origins.h"
#include "scenarios/scenario.h"

namespace spes::scenarios {

// Names of domains, the coordinator's and the groups' sites, and the paths of the matrix between
// the sites where somebody stands; there is no matrix afterwards. Throws std::invalid_argument with
// one line: a matrix that ReadPathMatrix refuses, a site that is unknown, path settings without a
// matrix.
void Resolve(Scenario& scenario, const Origins& origins);

}  // namespace spes::scenarios
