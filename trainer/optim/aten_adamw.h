// AdamW of many blocks at once in LibTorch's operators, for tensors on any one device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "trainer/optim/config.h"

namespace spes::trainer {

// ‖gradients‖² over all of them, added in float64. Waits for the device.
double SquaredNorm(at::TensorList gradients);

// What AdamWUpdate does to one block, by index: `values`, `first` and `second` are changed, all
// tensors of one index have as many elements and are contiguous; `updates` counts this one too. The
// gradients' memory is used for what lies between: they are lost.
void AdamWUpdate(const OptimizerConfig& config, double lr, double factor, at::TensorList gradients,
                 at::TensorList values, at::TensorList first, at::TensorList second,
                 const std::vector<std::int64_t>& updates);

}  // namespace spes::trainer
