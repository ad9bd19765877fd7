// A world as a safetensors file.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "trainer/sync/world.h"

namespace spes::trainer {

// One tensor per block part under the part's name, in table order; `metadata` (sizes of the model,
// round, step, hash) as strings in the header's __metadata__. Atomic: written beside `path`,
// synced, renamed. Throws std::runtime_error, one line.
void SaveWorld(const World& world, const std::map<std::string, std::string>& metadata,
               const std::string& path);

// Reads exactly the tensors of `table`; versions are 0. float32 and float64 files are converted to
// the table's type. Throws std::invalid_argument, one line that names the file and the tensor, when
// one is absent, has another shape, or the file is damaged.
World LoadWorld(std::shared_ptr<const BlockTable> table, const std::string& path);

// The header's __metadata__ alone.
std::map<std::string, std::string> ReadWorldMetadata(const std::string& path);

}  // namespace spes::trainer
