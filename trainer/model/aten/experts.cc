#include "trainer/model/aten/experts.h"

#include "trainer/model/aten/wide.h"
#include "trainer/model/autograd.h"

namespace spes::trainer::aten {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// `rows` rows [rows, D] from element `at` of a block.
at::Tensor Matrix(const at::Tensor& block, std::int64_t at, std::int64_t rows, std::int64_t D) {
  return block.narrow(0, at, rows * D).view({rows, D});
}

// The slots in the order of their experts, and back.
struct Order {
  at::Tensor slot;   // [S] int64: token · K + rank
  at::Tensor token;  // [S]
  at::Tensor place;  // [S]: where each slot lies in that order
  Order(const at::Tensor& slots, std::int64_t K)
      : slot(slots.to(at::kLong)),
        token(slot.div(K, "floor")),
        place(at::empty_like(slot).scatter_(0, slot, at::arange(slot.size(0), slot.options()))) {}
  // Rows [S, n] in that order → [N, K, n].
  at::Tensor OfTokens(const at::Tensor& rows, std::int64_t K) const {
    return rows.index_select(0, place).view({-1, K, rows.size(1)});
  }
};

// The two matrices of an expert that its input is multiplied with: one where they lie one behind
// the other.
struct UpMatrices {
  const ExpertLayout& at;
  bool joined;
  explicit UpMatrices(const ExpertLayout& layout)
      : at(layout), joined(at.v1 == at.w1 + at.expert_width * at.width) {}
  at::Tensor Both(const at::Tensor& block) const {
    return Matrix(block, at.w1, 2 * at.expert_width, at.width);
  }
  at::Tensor W1(const at::Tensor& block) const {
    return Matrix(block, at.w1, at.expert_width, at.width);
  }
  at::Tensor V1(const at::Tensor& block) const {
    return Matrix(block, at.v1, at.expert_width, at.width);
  }
  // hidden [n, 2F] = x [w1; v1]ᵀ
  void Product(const at::Tensor& x, const at::Tensor& block, at::Tensor hidden) const {
    const std::int64_t F = at.expert_width;
    if (joined) {
      at::mm_out(hidden, x, Both(block).t());
      return;
    }
    hidden.narrow(1, 0, F).copy_(at::mm(x, W1(block).t()));
    hidden.narrow(1, F, F).copy_(at::mm(x, V1(block).t()));
  }
  // dx [n, D] = dhidden [w1; v1]
  void InputGradient(const at::Tensor& dhidden, const at::Tensor& block, at::Tensor dx) const {
    const std::int64_t F = at.expert_width;
    if (joined) {
      at::mm_out(dx, dhidden, Both(block));
      return;
    }
    at::mm_out(dx, dhidden.narrow(1, 0, F), W1(block));
    dx.addmm_(dhidden.narrow(1, F, F), V1(block));
  }
};

struct Mixture : torch::autograd::Function<Mixture> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& weights, at::TensorList experts,
                            const Dispatch& dispatch, const ExpertLayout& layout) {
    const std::int64_t D = layout.width, F = layout.expert_width, K = weights.size(1);
    const std::int64_t S = dispatch.slots.size(0);
    const std::int64_t* offsets = dispatch.offsets.const_data_ptr<std::int64_t>();
    const UpMatrices up(layout);
    const Order order(dispatch.slots, K);
    const at::Tensor rows = x.index_select(0, order.token);
    at::Tensor hidden = at::empty({S, 2 * F}, x.options()), out = at::empty({S, D}, x.options());
    for (std::size_t e = 0; e < experts.size(); ++e) {
      const std::int64_t first = offsets[e], count = offsets[e + 1] - first;
      if (count == 0) continue;
      up.Product(rows.narrow(0, first, count), experts[e], hidden.narrow(0, first, count));
    }
    const at::Tensor gated = at::silu(hidden.narrow(1, 0, F)) * hidden.narrow(1, F, F);
    for (std::size_t e = 0; e < experts.size(); ++e) {
      const std::int64_t first = offsets[e], count = offsets[e + 1] - first;
      if (count == 0) continue;
      at::Tensor result = out.narrow(0, first, count);
      at::mm_out(result, gated.narrow(0, first, count), Matrix(experts[e], layout.w2, F, D));
    }
    variable_list saved{x, weights, hidden, dispatch.slots, dispatch.offsets};
    saved.insert(saved.end(), experts.begin(), experts.end());
    context->save_for_backward(std::move(saved));
    context->saved_data["layout"] =
        std::vector<std::int64_t>{D, F, layout.w1, layout.v1, layout.w2};
    return (order.OfTokens(out, K) * weights.unsqueeze(-1)).sum(1).to(x.scalar_type());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weights = saved[1], &hidden = saved[2];
    const std::int64_t* offsets = saved[4].const_data_ptr<std::int64_t>();
    const at::TensorList experts = at::TensorList(saved).slice(5);
    const std::vector<std::int64_t> sizes = context->saved_data["layout"].toIntVector();
    const ExpertLayout layout{sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]};
    const std::int64_t D = layout.width, F = layout.expert_width, K = weights.size(1);
    const at::ScalarType type = x.scalar_type();
    const UpMatrices up(layout);
    const Order order(saved[3], K);
    const std::int64_t S = order.slot.size(0);

    const at::Tensor dy = gradients[0].index_select(0, order.token);  // [S, D]
    at::Tensor dgated = at::empty({S, F}, x.options());  // of the outputs without their weights
    for (std::size_t e = 0; e < experts.size(); ++e) {
      const std::int64_t first = offsets[e], count = offsets[e + 1] - first;
      if (count == 0) continue;
      at::Tensor result = dgated.narrow(0, first, count);
      at::mm_out(result, dy.narrow(0, first, count), Matrix(experts[e], layout.w2, F, D).t());
    }
    const at::Tensor a = hidden.narrow(1, 0, F), b = hidden.narrow(1, F, F), silu = at::silu(a);
    const at::Tensor gated = silu * b;
    const at::Tensor weight = weights.flatten().index_select(0, order.slot).unsqueeze(1);  // [S, 1]
    const at::Tensor dweight = (Wide(dgated) * gated).sum(-1, true).to(weights.scalar_type());
    const at::Tensor d = (dgated * weight).to(type), weighted = (gated * weight).to(type);
    const at::Tensor dhidden = at::cat({at::silu_backward(d * b, a), d * silu}, 1);
    const at::Tensor rows = x.index_select(0, order.token);
    at::Tensor drows = at::empty({S, D}, x.options());
    variable_list results(2 + experts.size() + 2);
    for (std::size_t e = 0; e < experts.size(); ++e) {
      const std::int64_t first = offsets[e], count = offsets[e + 1] - first;
      const bool trains = context->needs_input_grad(2 + e);
      if (trains) results[2 + e] = at::zeros_like(experts[e]);
      if (count == 0) continue;
      const at::Tensor dh = dhidden.narrow(0, first, count);
      up.InputGradient(dh, experts[e], drows.narrow(0, first, count));
      if (!trains) continue;
      const at::Tensor x_rows = rows.narrow(0, first, count);
      const at::Tensor& dblock = results[2 + e];
      up.W1(dblock).copy_(at::mm(dh.narrow(1, 0, F).t(), x_rows));
      up.V1(dblock).copy_(at::mm(dh.narrow(1, F, F).t(), x_rows));
      at::Tensor dw2 = Matrix(dblock, layout.w2, F, D);
      at::mm_out(dw2, weighted.narrow(0, first, count).t(), dy.narrow(0, first, count));
    }
    results[0] = order.OfTokens(drows, K).sum(1);
    results[1] = order.OfTokens(dweight, K).squeeze(-1);
    return results;
  }
};

}  // namespace

at::Tensor MixExperts(const at::Tensor& x, const at::Tensor& weights, const Dispatch& dispatch,
                      at::TensorList experts, const ExpertLayout& layout) {
  return Mixture::apply(x, weights, experts, dispatch, layout);
}

}  // namespace spes::trainer::aten
