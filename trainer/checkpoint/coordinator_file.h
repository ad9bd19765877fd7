// The coordinator's state as one file.
//
// A sealed safetensors file. Values are tensors, one per part of a block that has them: world/NAME,
// moments/NAME/first and /second, velocity/NAME, adam/NAME/first and /second, residual/NAME; the
// float64 lists `load` and `norms` and the number `now_s` are tensors too, so that every bit of
// them survives. All else is metadata: numbers as decimal text, lists as JSON.
#pragma once

#include <memory>
#include <string>

#include "trainer/checkpoint/file_system.h"
#include "trainer/checkpoint/sealed_file.h"
#include "trainer/protocol/coordinator_state.h"

namespace spes::trainer {

// Atomically, straight from where the values lie; padding is left out. Throws std::runtime_error,
// one line, when it cannot be written, and std::invalid_argument on a state that does not fit its
// own table, which could not be read back.
void WriteCoordinatorState(const CoordinatorState& state, const std::string& path,
                           FileSystem& files = FileSystem::Real());

// The state as it was written, every buffer padded as the table says, padding zero; text that was
// not UTF-8 has U+FFFD in the place of what was wrong. All names, sizes and counts are checked
// before anything of their size is allocated. Throws DamagedFile, and std::invalid_argument, one
// line, where the file is whole and holds something else than a state of this table.
CoordinatorState ReadCoordinatorState(const std::string& path,
                                      std::shared_ptr<const BlockTable> table);

}  // namespace spes::trainer
