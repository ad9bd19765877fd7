// The table of a study's finished runs.
#pragma once

#include <string>

#include "app/sweep_study.h"

namespace spes::app {

// Writes table.csv and table.h5 (dataset `runs`) with a row for each finished run, in the study's
// order: name, seed and hash; the axes' labels and what they set; losses, time and bytes to the
// target, totals; and last what depends on the machine (wall_s, work_s, process_memory_bytes).
// `output`: folder, empty for the study's own. Returns the number of rows. Throws
// std::runtime_error when there is none.
std::size_t Collect(const LoadedStudy& loaded, const std::string& output);

}  // namespace spes::app
