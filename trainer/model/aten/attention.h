// Attention in LibTorch's operators: for tensors on any device, of any floating-point type.
#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/model/attention.h"

namespace spes::trainer::aten {

// As spes::trainer::CausalAttention. On CUDA, memory grows with T, not T², where a head's width is
// a multiple of 8.
at::Tensor CausalAttention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const AttentionShape& shape);

}  // namespace spes::trainer::aten
