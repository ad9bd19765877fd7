// Where the log and the worlds of a run go.
#pragma once

#include <string>

#include "scenarios/scenario.h"

namespace spes::app {

struct OutputPaths {
  std::string log, world;
};

// Folders are made where the program chose them itself. Throws std::invalid_argument, one line,
// where one of both could not be written: better now than when there is something to lose.
OutputPaths CheckedOutputPaths(const scenarios::Scenario& scenario);

// Throws std::invalid_argument, one line, unless the folder that `file` is to be in is there.
void RequireFolderOf(const std::string& file);

// That a node of a real run can keep its states where the scenario says; folders made where the
// program chose them itself. Throws std::invalid_argument, one line.
void CheckJournalFolder(const scenarios::Scenario& scenario);

}  // namespace spes::app
