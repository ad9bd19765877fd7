// The loss of the output in LibTorch's operators: for tensors on any device, also of bfloat16.
#pragma once

#include <ATen/core/Tensor.h>

namespace spes::trainer::aten {

// As spes::trainer::CrossEntropy; the targets are on the host. Of bfloat16 logits the losses are
// computed in float32 and are float32.
at::Tensor CrossEntropy(const at::Tensor& logits, const at::Tensor& targets, double z_loss);

}  // namespace spes::trainer::aten
