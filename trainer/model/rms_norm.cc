#include "trainer/model/rms_norm.h"
#include "trainer/model/autograd.h"

namespace spes::trainer {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Norm : torch::autograd::Function<Norm> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            double eps) {
    const std::int64_t rows = x.size(0), n = x.size(1);
    at::Tensor y = at::empty_like(x), scale = at::empty({rows}, x.options());
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "RmsNorm", [&] {
      const scalar_t *in = x.const_data_ptr<scalar_t>(), *w = weight.const_data_ptr<scalar_t>();
      scalar_t *out = y.data_ptr<scalar_t>(), *s = scale.data_ptr<scalar_t>();
      for (std::int64_t r = 0; r < rows; ++r) {
        s[r] = NormaliseRow(in + r * n, w, n, eps, out + r * n);
      }
    });
    context->save_for_backward({x, weight, scale});
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &scale = saved[2];
    const at::Tensor dy = gradients[0].contiguous();
    const std::int64_t rows = x.size(0), n = x.size(1);
    at::Tensor dx = at::empty_like(x), dweight;
    if (context->needs_input_grad(1)) dweight = at::zeros_like(weight);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "RmsNorm", [&] {
      const scalar_t *in = x.const_data_ptr<scalar_t>(), *w = weight.const_data_ptr<scalar_t>(),
                     *s = scale.const_data_ptr<scalar_t>(), *g = dy.const_data_ptr<scalar_t>();
      scalar_t* out = dx.data_ptr<scalar_t>();
      scalar_t* dw = dweight.defined() ? dweight.data_ptr<scalar_t>() : nullptr;
      for (std::int64_t r = 0; r < rows; ++r) {
        NormaliseRowBackward(g + r * n, in + r * n, w, s[r], n, out + r * n, dw);
      }
    });
    return {dx, dweight, at::Tensor()};
  }
};

}  // namespace

at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return Norm::apply(x, weight, eps);
}

}  // namespace spes::trainer
