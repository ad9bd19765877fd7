// Causal self-attention over whole sequences.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace spes::trainer {

struct AttentionShape {
  std::int64_t context = 0;  // T
  std::int64_t heads = 0, kv_heads = 0, head_width = 0;
};

// q [B·T, heads · width], k and v [B·T, kv_heads · width] → softmax(q kᵀ / √width, causal) v, [B·T,
// heads · width]; query head h reads key and value head h / (heads / kv_heads). Exact; scores are
// made a block of queries at a time and made again for the derivative, so that memory grows with T,
// not T² (as in arXiv 2205.14135).
at::Tensor CausalAttention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const AttentionShape& shape);

}  // namespace spes::trainer
