#include "trainer/model/experts.h"

#include <algorithm>
#include <cstring>

#include "trainer/model/autograd.h"
#include "trainer/model/gemm.h"
#include "trainer/model/vector_math.h"

namespace spes::trainer {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <class T>
T Sigmoid(T x) {
  return T{1} / (T{1} + Exp(-x));
}

// gated = silu(a) ⊙ b for one slot; a and b are the two halves of `hidden` [2F].
template <class T>
void Gate(const T* __restrict hidden, std::int64_t F, T* __restrict gated) {
  for (std::int64_t f = 0; f < F; ++f) {
    gated[f] = hidden[f] * Sigmoid(hidden[f]) * hidden[F + f];
  }
}

// Its derivative for one slot of routing weight w. `dgated` [F] holds the gradient of the expert's
// unweighted output, w2 applied, and becomes w · gated; dhidden [2F] is written. Returns the
// gradient of w; `scratch` [F].
template <class T>
T GateBackward(const T* __restrict hidden, T w, std::int64_t F, T* __restrict dgated,
               T* __restrict dhidden, T* __restrict scratch) {
  for (std::int64_t f = 0; f < F; ++f) {
    const T a = hidden[f], b = hidden[F + f], s = Sigmoid(a), silu = a * s, d = w * dgated[f];
    scratch[f] = silu * b;
    dhidden[f] = d * b * (s + silu * (T{1} - s));
    dhidden[F + f] = d * silu;
  }
  const T dw = Dot(dgated, scratch, F);
  for (std::int64_t f = 0; f < F; ++f) dgated[f] = w * scratch[f];
  return dw;
}

// y += w · x over n elements.
template <class T>
void AddScaled(T w, const T* __restrict x, std::int64_t n, T* __restrict y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] += w * x[i];
}

// Rows of `from` [·, n] of the tokens of these slots, one below the other.
template <class T>
void GatherRows(const std::int32_t* slots, std::int64_t count, std::int64_t K, std::int64_t n,
                const T* from, T* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * n, from + slots[i] / K * n, static_cast<std::size_t>(n) * sizeof(T));
  }
}

// [count, 2F] = x [w1; v1]ᵀ: one product where the two matrices lie one behind the other.
template <class T>
void UpProducts(const ExpertLayout& at, std::int64_t count, const T* x, const T* block, T* hidden) {
  const std::int64_t D = at.width, F = at.expert_width;
  if (at.v1 == at.w1 + F * D) {
    Gemm(Op::kPlain, Op::kTransposed, count, 2 * F, D, T{1}, x, D, block + at.w1, D, T{0}, hidden,
         2 * F);
    return;
  }
  Gemm(Op::kPlain, Op::kTransposed, count, F, D, T{1}, x, D, block + at.w1, D, T{0}, hidden, 2 * F);
  Gemm(Op::kPlain, Op::kTransposed, count, F, D, T{1}, x, D, block + at.v1, D, T{0}, hidden + F,
       2 * F);
}

// [count, D] = dhidden [w1; v1].
template <class T>
void DownGradients(const ExpertLayout& at, std::int64_t count, const T* dhidden, const T* block,
                   T* dx) {
  const std::int64_t D = at.width, F = at.expert_width;
  if (at.v1 == at.w1 + F * D) {
    Gemm(Op::kPlain, Op::kPlain, count, D, 2 * F, T{1}, dhidden, 2 * F, block + at.w1, D, T{0}, dx,
         D);
    return;
  }
  Gemm(Op::kPlain, Op::kPlain, count, D, F, T{1}, dhidden, 2 * F, block + at.w1, D, T{0}, dx, D);
  Gemm(Op::kPlain, Op::kPlain, count, D, F, T{1}, dhidden + F, 2 * F, block + at.v1, D, T{1}, dx,
       D);
}

// The largest number of slots of one expert.
std::int64_t LargestGroup(const std::int64_t* offsets, std::size_t experts) {
  std::int64_t largest = 0;
  for (std::size_t e = 0; e < experts; ++e) {
    largest = std::max(largest, offsets[e + 1] - offsets[e]);
  }
  return largest;
}

struct Mixture : torch::autograd::Function<Mixture> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& weights, at::TensorList experts,
                            const Dispatch& dispatch, const ExpertLayout& layout) {
    const std::int64_t N = x.size(0), D = layout.width, F = layout.expert_width;
    const std::int64_t K = weights.size(1);
    const std::int64_t* offsets = dispatch.offsets.const_data_ptr<std::int64_t>();
    const std::int32_t* slots = dispatch.slots.const_data_ptr<std::int32_t>();
    const std::int64_t largest = LargestGroup(offsets, experts.size());
    at::Tensor y = at::zeros_like(x), hidden = at::empty({N * K, 2 * F}, x.options());
    at::Tensor rows = at::empty({largest, D}, x.options()),
               gated = at::empty({largest, F}, x.options());
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "MixExperts", [&] {
      scalar_t *out = y.data_ptr<scalar_t>(), *row = rows.data_ptr<scalar_t>(),
               *g = gated.data_ptr<scalar_t>();
      const scalar_t* weight = weights.const_data_ptr<scalar_t>();
      for (std::size_t e = 0; e < experts.size(); ++e) {
        const std::int64_t first = offsets[e], count = offsets[e + 1] - first;
        const std::int32_t* slot = slots + first;
        const scalar_t* block = experts[e].const_data_ptr<scalar_t>();
        scalar_t* h = hidden.data_ptr<scalar_t>() + first * 2 * F;
        GatherRows(slot, count, K, D, x.const_data_ptr<scalar_t>(), row);
        UpProducts(layout, count, row, block, h);
        for (std::int64_t i = 0; i < count; ++i) Gate(h + i * 2 * F, F, g + i * F);
        Gemm(Op::kPlain, Op::kPlain, count, D, F, scalar_t{1}, g, F, block + layout.w2, D,
             scalar_t{0}, row, D);
        for (std::int64_t i = 0; i < count; ++i) {
          AddScaled(weight[slot[i]], row + i * D, D, out + slot[i] / K * D);
        }
      }
    });
    variable_list saved{x, weights, hidden, dispatch.slots, dispatch.offsets};
    saved.insert(saved.end(), experts.begin(), experts.end());
    context->save_for_backward(std::move(saved));
    context->saved_data["layout"] =
        std::vector<std::int64_t>{D, F, layout.w1, layout.v1, layout.w2};
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weights = saved[1], &hidden = saved[2];
    const std::int32_t* slots = saved[3].const_data_ptr<std::int32_t>();
    const std::int64_t* offsets = saved[4].const_data_ptr<std::int64_t>();
    const at::TensorList experts = at::TensorList(saved).slice(5);
    const std::vector<std::int64_t> sizes = context->saved_data["layout"].toIntVector();
    const ExpertLayout layout{sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]};
    const std::int64_t D = layout.width, F = layout.expert_width, K = weights.size(1);
    const at::Tensor dy = gradients[0].contiguous();
    const std::int64_t largest = LargestGroup(offsets, experts.size());
    at::Tensor dx = at::zeros_like(x), dweights = at::empty_like(weights);
    at::Tensor dy_rows = at::empty({largest, D}, x.options()),
               rows = at::empty({largest, D}, x.options()),
               dgated = at::empty({largest, F}, x.options()),
               dhidden = at::empty({largest, 2 * F}, x.options()),
               scratch = at::empty({F}, x.options());
    variable_list results(2 + experts.size() + 2);
    results[0] = dx;
    results[1] = dweights;
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "MixExperts", [&] {
      const scalar_t* weight = weights.const_data_ptr<scalar_t>();
      scalar_t *dyr = dy_rows.data_ptr<scalar_t>(), *row = rows.data_ptr<scalar_t>(),
               *dg = dgated.data_ptr<scalar_t>(), *dh = dhidden.data_ptr<scalar_t>(),
               *dweight = dweights.data_ptr<scalar_t>(), *spare = scratch.data_ptr<scalar_t>();
      for (std::size_t e = 0; e < experts.size(); ++e) {
        const std::int64_t first = offsets[e], count = offsets[e + 1] - first;
        const std::int32_t* slot = slots + first;
        const scalar_t* block = experts[e].const_data_ptr<scalar_t>();
        const scalar_t* h = hidden.const_data_ptr<scalar_t>() + first * 2 * F;
        const bool trains = context->needs_input_grad(2 + e);
        if (trains) results[2 + e] = at::zeros_like(experts[e]);
        GatherRows(slot, count, K, D, dy.const_data_ptr<scalar_t>(), dyr);
        Gemm(Op::kPlain, Op::kTransposed, count, F, D, scalar_t{1}, dyr, D, block + layout.w2, D,
             scalar_t{0}, dg, F);
        for (std::int64_t i = 0; i < count; ++i) {
          dweight[slot[i]] =
              GateBackward(h + i * 2 * F, weight[slot[i]], F, dg + i * F, dh + i * 2 * F, spare);
        }
        DownGradients(layout, count, dh, block, row);
        for (std::int64_t i = 0; i < count; ++i) {
          AddScaled(scalar_t{1}, row + i * D, D, dx.data_ptr<scalar_t>() + slot[i] / K * D);
        }
        if (!trains || count == 0) continue;
        scalar_t* dblock = results[2 + e].template data_ptr<scalar_t>();
        GatherRows(slot, count, K, D, x.const_data_ptr<scalar_t>(), row);
        Gemm(Op::kTransposed, Op::kPlain, F, D, count, scalar_t{1}, dh, 2 * F, row, D, scalar_t{0},
             dblock + layout.w1, D);
        Gemm(Op::kTransposed, Op::kPlain, F, D, count, scalar_t{1}, dh + F, 2 * F, row, D,
             scalar_t{0}, dblock + layout.v1, D);
        Gemm(Op::kTransposed, Op::kPlain, F, D, count, scalar_t{1}, dg, F, dyr, D, scalar_t{0},
             dblock + layout.w2, D);
      }
    });
    return results;
  }
};

}  // namespace

at::Tensor MixExperts(const at::Tensor& x, const at::Tensor& weights, const Dispatch& dispatch,
                      at::TensorList experts, const ExpertLayout& layout) {
  return Mixture::apply(x, weights, experts, dispatch, layout);
}

}  // namespace spes::trainer
