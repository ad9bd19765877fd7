// Fills in what a scenario leaves to be found out.
#pragma once

#include <string>
#include <vector>

#include "scenarios/origins.h"
#include "scenarios/scenario.h"

namespace spes::scenarios {

// Names of domains, every site that has none, and the paths of the matrices (with routing direct
// those between the sites where somebody stands); there is no matrix afterwards. Throws
// std::invalid_argument with one line: a matrix that path_matrix.h refuses, two kinds of matrices
// at once, a site that is unknown or without a name, two paths between the same sites, settings of
// a matrix's paths without a matrix.
void Resolve(Scenario& scenario, const Origins& origins);

}  // namespace spes::scenarios
