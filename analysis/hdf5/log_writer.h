// The run log as an HDF5 file.
#pragma once

#include <memory>
#include <string>

#include "analysis/recorder.h"

namespace spes::analysis {

// Creates (never overwrites an existing file in place: writes anew) `path` and its tables, in
// single-writer-multiple-reader mode. Throws std::runtime_error, one line, when it cannot.
std::unique_ptr<Recorder> MakeHdf5Recorder(const std::string& path, const RunInfo& info);

}  // namespace spes::analysis
