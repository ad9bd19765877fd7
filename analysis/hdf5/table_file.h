// Tables of a study as files that appear only when they are whole.
#pragma once

#include <string>

#include "analysis/value_table.h"

namespace spes::analysis {

// An HDF5 file with one table called `name`: a compound dataset as in run logs, with a column of
// float64, int64 or UTF-8 text for each of the table's. It replaces what is at `path` at once.
// Throws std::invalid_argument, one line, when `path` cannot be a file there; std::runtime_error
// when it cannot be written.
void WriteHdf5Table(const std::string& path, const std::string& name, const ValueTable& table);

// The same of a text file.
void WriteTextFile(const std::string& path, const std::string& text);

}  // namespace spes::analysis
