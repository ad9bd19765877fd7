// The run log as an HDF5 file.
#pragma once

#include <memory>
#include <string>

#include "analysis/recorder.h"

namespace spes::analysis {

// A recorder that writes to a new file at `path`, in single-writer-multiple-reader mode: others may
// read it while it grows (h5py: File(path, "r", swmr=True)), and after a crash it holds everything
// up to the last Flush. A file that is already there is replaced as a whole, never written into.
//
// Root attributes: schema_version, program_version, scenario, scenario_hash, seed, host, charged
// (text of free length); status and world_hash (text of fixed width) and wall_s (from the log's
// making to its end, NaN until then), the only ones that change.
// Tables: see record_columns.h.
//
// Throws std::invalid_argument, one line, when `path` cannot be a file there (no such folder, not
// writable, a folder itself); std::runtime_error when the disk is full. A failed write throws
// std::runtime_error once, closes the log with the status "failed" where that can still be written,
// and leaves it readable; every later call throws too, except Finish(kFailed) and the destructor. A
// recorder destroyed without Finish closes its log with the status "failed".
std::unique_ptr<Recorder> MakeHdf5Recorder(const std::string& path, const RunInfo& info);

}  // namespace spes::analysis
