#include "trainer/trained_block.h"

#include <cmath>
#include <memory>

#include "trainer/model/autograd.h"
#include "trainer/model/block_tensor.h"
#include "trainer/optim/adamw.h"
#include "trainer/optim/aten_adamw.h"

namespace spes::trainer {

namespace {

// Host memory as a tensor like `block`, for LibTorch to copy to or from.
at::Tensor Like(const at::Tensor& block, const std::byte* bytes) {
  return at::from_blob(const_cast<std::byte*>(bytes), block.sizes(),
                       at::TensorOptions(block.scalar_type()));
}

}  // namespace

at::Tensor ZeroBlock(const BlockSpec& spec, DType dtype, at::Device device) {
  return at::zeros({spec.buffer_elements}, at::TensorOptions(ScalarTypeOf(dtype)).device(device));
}

TrainedMoments ZeroMoments(const BlockSpec& spec, DType dtype, at::Device device) {
  return {ZeroBlock(spec, dtype, device), ZeroBlock(spec, dtype, device), 0};
}

SharedBuffer ToBuffer(const BlockSpec& spec, DType dtype, const at::Tensor& tensor) {
  auto buffer = std::make_shared<Buffer>(spec.buffer_elements * ElementBytes(dtype));
  Like(tensor, buffer->data()).copy_(tensor);
  return buffer;
}

void CopyFrom(std::span<const std::byte> bytes, at::Tensor& block) {
  TORCH_INTERNAL_ASSERT(bytes.size() == block.nbytes());
  block.copy_(Like(block, bytes.data()));
}

void Adopt(const Buffer& published, double keep, at::Tensor& own) {
  const at::Tensor theirs = Like(own, published.data());
  if (keep == 0) {
    own.copy_(theirs);
  } else {
    own.mul_(keep).add_(theirs.to(own.device()) * (1 - keep));
  }
}

double GradientNorm(DType dtype, const std::vector<at::Tensor>& gradients, bool library) {
  if (library) return std::sqrt(SquaredNorm(gradients));
  double square = 0;
  for (const at::Tensor& g : gradients) square += SquaredNorm(dtype, g.const_data_ptr(), g.numel());
  return std::sqrt(square);
}

void UpdateBlocks(const OptimizerConfig& config, double lr, double factor, DType dtype,
                  std::vector<at::Tensor>& gradients, std::vector<TrainedBlock>& blocks,
                  bool library) {
  std::vector<at::Tensor> values, first, second;
  std::vector<std::int64_t> updates;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    TrainedMoments& moments = blocks[i].moments;
    ++moments.updates;
    if (!library) {
      AdamWUpdate(config, lr, factor, dtype, gradients[i].const_data_ptr(), gradients[i].numel(),
                  moments.updates, blocks[i].value.mutable_data_ptr(),
                  moments.first.mutable_data_ptr(), moments.second.mutable_data_ptr());
      continue;
    }
    gradients[i] = gradients[i].flatten();
    const std::int64_t n = gradients[i].numel();
    values.push_back(blocks[i].value.narrow(0, 0, n));
    first.push_back(moments.first.narrow(0, 0, n));
    second.push_back(moments.second.narrow(0, 0, n));
    updates.push_back(moments.updates);
  }
  if (library) AdamWUpdate(config, lr, factor, gradients, values, first, second, updates);
}

}  // namespace spes::trainer
