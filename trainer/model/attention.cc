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

// Calls f(sequence, query head, first query, queries) for every block of queries.
template <class F>
void ForEachBlock(std::int64_t sequences, const AttentionShape& shape, F f) {
  for (std::int64_t b = 0; b < sequences; ++b) {
    for (std::int64_t h = 0; h < shape.heads; ++h) {
      for (std::int64_t t = 0; t < shape.context; t += kQueries) {
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
          scalar_t* x = p + i * T;
          const std::int64_t seen = t + i + 1;
          const scalar_t largest = Max(x, seen);
          for (std::int64_t j = 0; j < seen; ++j) x[j] = Exp(x[j] - largest);
          const scalar_t sum = Sum(x, seen);
          for (std::int64_t j = 0; j < seen; ++j) x[j] /= sum;
          std::fill(x + seen, x + at.keys, scalar_t{0});
          lse.data_ptr<scalar_t>()[at.statistic + i] = largest + std::log(sum);
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
    at::Tensor dq = at::empty_like(q), dk = at::zeros_like(k), dv = at::zeros_like(v);
    at::Tensor scores = at::empty({2, std::min(kQueries, T), T}, q.options());
    AT_DISPATCH_FLOATING_TYPES(q.scalar_type(), "CausalAttention", [&] {
      const scalar_t scale = static_cast<scalar_t>(1 / std::sqrt(static_cast<double>(d)));
      scalar_t *p = scores.data_ptr<scalar_t>(), *dp = p + scores.stride(0);
      ForEachBlock(B, shape, [&](std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t n) {
        const Offsets at(shape, b, h, t, n);
        const scalar_t* q_block = q.const_data_ptr<scalar_t>() + at.query;
        const scalar_t* k_block = k.const_data_ptr<scalar_t>() + at.key;
        const scalar_t* dout_block = dout.const_data_ptr<scalar_t>() + at.query;
        Gemm(Op::kPlain, Op::kTransposed, n, at.keys, d, scale, q_block, row, k_block, kv_row,
             scalar_t{0}, p, T);
        Gemm(Op::kPlain, Op::kTransposed, n, at.keys, d, scalar_t{1}, dout_block, row,
             v.const_data_ptr<scalar_t>() + at.key, kv_row, scalar_t{0}, dp, T);
        for (std::int64_t i = 0; i < n; ++i) {
          scalar_t *x = p + i * T, *dx = dp + i * T;
          const std::int64_t seen = t + i + 1;
          const scalar_t row_lse = lse.const_data_ptr<scalar_t>()[at.statistic + i];
          for (std::int64_t j = 0; j < seen; ++j) x[j] = Exp(x[j] - row_lse);
          const scalar_t mean = Dot(x, dx, seen);
          for (std::int64_t j = 0; j < seen; ++j) dx[j] = x[j] * (dx[j] - mean) * scale;
          std::fill(x + seen, x + at.keys, scalar_t{0});
          std::fill(dx + seen, dx + at.keys, scalar_t{0});
        }
        Gemm(Op::kPlain, Op::kPlain, n, d, at.keys, scalar_t{1}, dp, T, k_block, kv_row,
             scalar_t{0}, dq.data_ptr<scalar_t>() + at.query, row);
        Gemm(Op::kTransposed, Op::kPlain, at.keys, d, n, scalar_t{1}, dp, T, q_block, row,
             scalar_t{1}, dk.data_ptr<scalar_t>() + at.key, kv_row);
        Gemm(Op::kTransposed, Op::kPlain, at.keys, d, n, scalar_t{1}, p, T, dout_block, row,
             scalar_t{1}, dv.data_ptr<scalar_t>() + at.key, kv_row);
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
