#include "trainer/model/attention.h"

#include <algorithm>
#include <cmath>

#include "trainer/model/autograd.h"
#include "trainer/model/gemm.h"
#include "trainer/model/vector_math.h"

namespace spes::trainer {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kQueries = 64;  // of one block

// Calls f(sequence, query head, first query, queries) for every block of queries, the last of a
// sequence first: it sees all keys.
template <class F>
void ForEachBlock(std::int64_t sequences, const AttentionShape& shape, F f) {
  for (std::int64_t b = 0; b < sequences; ++b) {
    for (std::int64_t h = 0; h < shape.heads; ++h) {
      for (std::int64_t t = (shape.context - 1) / kQueries * kQueries; t >= 0; t -= kQueries) {
        f(b, h, t, std::min(kQueries, shape.context - t));
      }
    }
  }
}

// Where a block's operands lie; leading dimensions are the widths of whole rows.
struct Offsets {
  std::int64_t query, key, statistic, keys;
  Offsets(const AttentionShape& s, std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t n)
      : query(((b * s.context + t) * s.heads + h) * s.head_width),
        key((b * s.context * s.kv_heads + h / (s.heads / s.kv_heads)) * s.head_width),
        statistic((b * s.heads + h) * s.context + t),
        keys(t + n) {}
};

// softmax of the first `seen` of n scores in place, the rest 0; returns their logsumexp.
template <class T>
T CausalSoftmax(T* __restrict x, std::int64_t seen, std::int64_t n) {
  const T largest = Max(x, seen);
  for (std::int64_t j = 0; j < seen; ++j) x[j] = Exp(x[j] - largest);
  const T sum = Sum(x, seen), share = T{1} / sum;
  for (std::int64_t j = 0; j < seen; ++j) x[j] *= share;
  std::fill(x + seen, x + n, T{0});
  return largest + std::log(sum);
}

// Turns n scores into probabilities p by their logsumexp, and the probabilities' gradients into
// those of the scores times `scale`; 0 beyond the first `seen`.
template <class T>
void CausalSoftmaxBackward(T lse, T scale, std::int64_t seen, std::int64_t n, T* __restrict p,
                           T* __restrict dp) {
  for (std::int64_t j = 0; j < seen; ++j) p[j] = Exp(p[j] - lse);
  const T mean = Dot(p, dp, seen);
  for (std::int64_t j = 0; j < seen; ++j) dp[j] = p[j] * (dp[j] - mean) * scale;
  std::fill(p + seen, p + n, T{0});
  std::fill(dp + seen, dp + n, T{0});
}

struct Attention : torch::autograd::Function<Attention> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, const AttentionShape& shape) {
    const std::int64_t T = shape.context, d = shape.head_width, B = q.size(0) / T;
    const std::int64_t row = shape.heads * d, kv_row = shape.kv_heads * d;
    at::Tensor out = at::empty_like(q), lse = at::empty({B, shape.heads, T}, q.options());
    at::Tensor scores = at::empty({std::min(kQueries, T), T}, q.options());
    AT_DISPATCH_FLOATING_TYPES(q.scalar_type(), "CausalAttention", [&] {
      const scalar_t scale = static_cast<scalar_t>(1 / std::sqrt(static_cast<double>(d)));
      scalar_t* p = scores.data_ptr<scalar_t>();
      ForEachBlock(B, shape, [&](std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t n) {
        const Offsets at(shape, b, h, t, n);
        Gemm(Op::kPlain, Op::kTransposed, n, at.keys, d, scale,
             q.const_data_ptr<scalar_t>() + at.query, row, k.const_data_ptr<scalar_t>() + at.key,
             kv_row, scalar_t{0}, p, T);
        for (std::int64_t i = 0; i < n; ++i) {
          lse.data_ptr<scalar_t>()[at.statistic + i] = CausalSoftmax(p + i * T, t + i + 1, at.keys);
        }
        Gemm(Op::kPlain, Op::kPlain, n, d, at.keys, scalar_t{1}, p, T,
             v.const_data_ptr<scalar_t>() + at.key, kv_row, scalar_t{0},
             out.data_ptr<scalar_t>() + at.query, row);
      });
    });
    context->save_for_backward({q, k, v, lse});
    context->saved_data["context"] = T;
    context->saved_data["heads"] = shape.heads;
    context->saved_data["kv_heads"] = shape.kv_heads;
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &q = saved[0], &k = saved[1], &v = saved[2], &lse = saved[3];
    const at::Tensor dout = gradients[0].contiguous();
    AttentionShape shape{context->saved_data["context"].toInt(),
                         context->saved_data["heads"].toInt(),
                         context->saved_data["kv_heads"].toInt(), 0};
    shape.head_width = q.size(1) / shape.heads;
    const std::int64_t T = shape.context, d = shape.head_width, B = q.size(0) / T;
    const std::int64_t row = shape.heads * d, kv_row = shape.kv_heads * d;
    at::Tensor dq = at::empty_like(q), dk = at::empty_like(k), dv = at::empty_like(v);
    at::Tensor scores = at::empty({2, std::min(kQueries, T), T}, q.options());
    AT_DISPATCH_FLOATING_TYPES(q.scalar_type(), "CausalAttention", [&] {
      const scalar_t scale = static_cast<scalar_t>(1 / std::sqrt(static_cast<double>(d)));
      scalar_t *p = scores.data_ptr<scalar_t>(), *dp = p + scores.stride(0);
      ForEachBlock(B, shape, [&](std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t n) {
        const Offsets at(shape, b, h, t, n);
        const scalar_t* q_block = q.const_data_ptr<scalar_t>() + at.query;
        const scalar_t* k_block = k.const_data_ptr<scalar_t>() + at.key;
        // The first to reach a key's gradient writes it, the others add.
        const bool first = t + n == T && h % (shape.heads / shape.kv_heads) == 0;
        const scalar_t add = static_cast<scalar_t>(first ? 0 : 1);
        const scalar_t* dout_block = dout.const_data_ptr<scalar_t>() + at.query;
        Gemm(Op::kPlain, Op::kTransposed, n, at.keys, d, scale, q_block, row, k_block, kv_row,
             scalar_t{0}, p, T);
        Gemm(Op::kPlain, Op::kTransposed, n, at.keys, d, scalar_t{1}, dout_block, row,
             v.const_data_ptr<scalar_t>() + at.key, kv_row, scalar_t{0}, dp, T);
        for (std::int64_t i = 0; i < n; ++i) {
          CausalSoftmaxBackward(lse.const_data_ptr<scalar_t>()[at.statistic + i], scale, t + i + 1,
                                at.keys, p + i * T, dp + i * T);
        }
        Gemm(Op::kPlain, Op::kPlain, n, d, at.keys, scalar_t{1}, dp, T, k_block, kv_row,
             scalar_t{0}, dq.data_ptr<scalar_t>() + at.query, row);
        Gemm(Op::kTransposed, Op::kPlain, at.keys, d, n, scalar_t{1}, dp, T, q_block, row, add,
             dk.data_ptr<scalar_t>() + at.key, kv_row);
        Gemm(Op::kTransposed, Op::kPlain, at.keys, d, n, scalar_t{1}, p, T, dout_block, row, add,
             dv.data_ptr<scalar_t>() + at.key, kv_row);
      });
    });
    return {dq, dk, dv, at::Tensor()};
  }
};

}  // namespace

at::Tensor CausalAttention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const AttentionShape& shape) {
  return Attention::apply(q, k, v, shape);
}

}  // namespace spes::trainer
