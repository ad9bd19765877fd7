// Nodes that send something else than they have trained: a means of testing what is done against
// them.
#pragma once

#include <cstdint>

#include "trainer/sync/block_table.h"

namespace spes::trainer {

enum class PoisonKind {
  kNone,
  kNoise,     // normal noise is added, `factor` times as large per element as the block's update
  kSignFlip,  // the update is multiplied by −factor
  kScale,     // the update is multiplied by factor
  kNan,       // the first element is not a number
  kStale,     // the value that the node began the run with, whatever it has trained
};

struct PoisonConfig {
  PoisonKind kind = PoisonKind::kNone;
  double factor = 1;       // kNoise, kSignFlip, kScale; > 0
  std::int32_t after = 0;  // rounds that it is honest for
  std::uint64_t seed = 0;  // of the noise, with the round and the block; another one for each node
};

// What is sent in place of `own`. `published`: what the update is counted from; null: `own` is a
// gradient, the update itself. `start`: for kStale. All of the block's padded size; padding stays
// zero. The same for the same arguments, to the bit.
SharedBuffer Poisoned(const PoisonConfig& config, std::int32_t round, BlockId id,
                      const BlockTable& table, const SharedBuffer& own, const Buffer* published,
                      const SharedBuffer& start);

}  // namespace spes::trainer
