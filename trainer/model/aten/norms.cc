#include "trainer/model/aten/norms.h"

#include "trainer/model/aten/wide.h"
#include "trainer/model/autograd.h"

namespace spes::trainer::aten {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// x · rsqrt(mean(x²) + eps) · weight over the last dimension. A function of its own keeps x and one
// number per row for the derivative, where the operators one by one would keep three copies of x.
struct Normalise : torch::autograd::Function<Normalise> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            double eps) {
    const at::Tensor wide = Wide(x);
    const at::Tensor scale = (wide.square().mean(-1, true) + eps).rsqrt();
    context->save_for_backward({x, weight, scale});
    return (wide * scale * weight).to(x.scalar_type());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &scale = saved[2];
    const at::Tensor dy = Wide(gradients[0]), unit = Wide(x) * scale, g = dy * weight;
    const at::Tensor dx = (g - unit * (g * unit).mean(-1, true)) * scale;
    at::Tensor dweight;
    if (context->needs_input_grad(1)) dweight = (dy * unit).reshape({-1, weight.size(0)}).sum(0);
    return {dx.to(x.scalar_type()), dweight, at::Tensor()};
  }
};

}  // namespace

at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return Normalise::apply(x, weight, eps);
}

SumAndNorm AddRmsNorm(const at::Tensor& x, const at::Tensor& y, const at::Tensor& weight,
                      double eps) {
  const at::Tensor sum = x + y;
  return {sum, RmsNorm(sum, weight, eps)};
}

at::Tensor NormaliseAndRotate(const at::Tensor& x, const at::Tensor& weight, QkNorm norm,
                              double eps, const at::Tensor& table) {
  const std::int64_t T = table.size(0), half = table.size(2), B = x.size(0) / T;
  at::Tensor y = x;
  if (norm == QkNorm::kFull) y = RmsNorm(x, weight, eps);
  if (norm == QkNorm::kHead) y = RmsNorm(x.reshape({B * T, -1, 2 * half}), weight, eps);
  const at::Tensor pairs = Wide(y).reshape({B, T, -1, 2, half});
  const at::Tensor a = pairs.select(3, 0), b = pairs.select(3, 1);
  const at::Tensor cos = table.select(1, 0).unsqueeze(1), sin = table.select(1, 1).unsqueeze(1);
  return at::stack({a * cos - b * sin, b * cos + a * sin}, 3)
      .reshape(x.sizes())
      .to(x.scalar_type());
}

}  // namespace spes::trainer::aten
