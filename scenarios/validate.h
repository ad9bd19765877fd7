// What must hold between the fields of a scenario; limits of single ones are in describe.cc.
#pragma once

#include <string>

#include "scenarios/origins.h"
#include "scenarios/scenario.h"

namespace spes::scenarios {

// The scenario must be resolved (resolve.h). Throws std::invalid_argument with one line that names
// the key, where it was written if `origins` knows, and what would be right.
void Validate(const Scenario& scenario, const Origins& origins = {});

// `path`: of the model within what was read.
void ValidateModel(const trainer::ModelConfig& model, const std::string& path,
                   const Origins& origins);

}  // namespace spes::scenarios
