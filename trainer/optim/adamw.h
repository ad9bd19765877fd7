// AdamW (arXiv 1711.05101) over one block at a time. No LibTorch here.
#pragma once

#include <cstdint>

#include "trainer/optim/config.h"
#include "trainer/sync/buffer.h"

namespace spes::trainer {

// The moments of one block, of its buffer's size, and how many updates they have seen.
struct AdamMoments {
  Buffer first, second;
  std::int64_t updates = 0;
};

// ‖gradient‖² of `elements` values of `type`, added in a fixed order.
double SquaredNorm(DType type, const void* gradient, std::int64_t elements);

// min(1, clip_norm / (norm + 1e-6)); 1 where clip_norm is 0.
double ClipFactor(const OptimizerConfig& config, double norm);

// One update of the first `elements` of a buffer, padding between parts included: zero values with
// zero gradients stay zero. `gradient` has the buffer's layout and is scaled by `factor` first.
// Bias correction goes by the block's own count of updates, decay is decoupled.
void AdamWUpdate(const OptimizerConfig& config, double lr, double factor, DType type,
                 const void* gradient, std::int64_t elements, Buffer& values, AdamMoments& moments);

// The same on plain memory of `type`; `updates` counts this one too.
void AdamWUpdate(const OptimizerConfig& config, double lr, double factor, DType type,
                 const void* gradient, std::int64_t elements, std::int64_t updates, void* values,
                 void* first, void* second);

}  // namespace spes::trainer
