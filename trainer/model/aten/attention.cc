#include "trainer/model/aten/attention.h"

#include "trainer/model/autograd.h"

namespace spes::trainer::aten {

at::Tensor CausalAttention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const AttentionShape& shape) {
  const std::int64_t T = shape.context, d = shape.head_width, B = q.size(0) / T;
  const std::int64_t group = shape.heads / shape.kv_heads;
  const auto heads = [&](const at::Tensor& x, std::int64_t n) {
    return x.reshape({B, T, n, d}).transpose(1, 2);
  };
  // Keys and values once for each of their query heads: not every kernel shares them.
  const auto repeated = [&](const at::Tensor& x) {
    const at::Tensor own = heads(x, shape.kv_heads);
    if (group == 1) return own;
    return own.unsqueeze(2)
        .expand({B, shape.kv_heads, group, T, d})
        .reshape({B, shape.heads, T, d});
  };
  return at::scaled_dot_product_attention(heads(q, shape.heads), repeated(k), repeated(v), {}, 0.0,
                                          /*is_causal=*/true)
      .transpose(1, 2)
      .reshape({B * T, shape.heads * d});
}

}  // namespace spes::trainer::aten
