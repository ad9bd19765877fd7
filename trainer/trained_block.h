// What a node keeps of a block that it trains, on the first of its devices.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trainer/optim/config.h"
#include "trainer/sync/block_table.h"

namespace spes::trainer {

// AdamW's moments and how many updates they have seen. Tensors are whole blocks, [buffer_elements],
// zero between the parts.
struct TrainedMoments {
  at::Tensor first, second;
  std::int64_t updates = 0;
};

struct TrainedBlock {
  at::Tensor value;
  TrainedMoments moments;
};

// A block of zeros, aligned to 64 bytes; moments that have seen nothing.
at::Tensor ZeroBlock(const BlockSpec& spec, DType dtype, at::Device device);
TrainedMoments ZeroMoments(const BlockSpec& spec, DType dtype, at::Device device);

// In host memory: a buffer of the block's padded size with the values of `tensor`, which is a whole
// block or has the block's shape.
SharedBuffer ToBuffer(const BlockSpec& spec, DType dtype, const at::Tensor& tensor);
// The other way: `bytes` of a whole block.
void CopyFrom(std::span<const std::byte> bytes, at::Tensor& block);

// own ← keep · own + (1 − keep) · published
void Adopt(const Buffer& published, double keep, at::Tensor& own);

// ‖gradients‖ of `dtype`, all on one device and contiguous. `library`: in LibTorch's operators, as
// on any device but the host.
double GradientNorm(DType dtype, const std::vector<at::Tensor>& gradients, bool library);

// One AdamW update of `blocks`, see optim/adamw.h, by gradients in the shape of BlockTensor, scaled
// by `factor` first. The gradients' memory is used for what lies between: they are lost.
void UpdateBlocks(const OptimizerConfig& config, double lr, double factor, DType dtype,
                  std::vector<at::Tensor>& gradients, std::vector<TrainedBlock>& blocks,
                  bool library);

}  // namespace spes::trainer
