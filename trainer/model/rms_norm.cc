#include "trainer/model/rms_norm.h"

#include "trainer/model/autograd.h"

namespace spes::trainer {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// sum = x + y over n elements.
template <class T>
void Add(const T* __restrict x, const T* __restrict y, std::int64_t n, T* __restrict sum) {
  for (std::int64_t i = 0; i < n; ++i) sum[i] = x[i] + y[i];
}

template <class T>
void AddTo(const T* __restrict x, std::int64_t n, T* __restrict sum) {
  for (std::int64_t i = 0; i < n; ++i) sum[i] += x[i];
}

// Gradients of a norm's input and, if wanted, of its weight, given that of its output; `residual`,
// if defined, is added to that of the input.
struct NormGradients {
  at::Tensor input, weight;
  NormGradients(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& w,
                const at::Tensor& scale, const at::Tensor& residual, bool wants_weight)
      : input(at::empty_like(x)) {
    if (wants_weight) weight = at::zeros_like(w);
    const std::int64_t rows = x.size(0), n = x.size(1);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "RmsNorm", [&] {
      const scalar_t *in = x.const_data_ptr<scalar_t>(), *gain = w.const_data_ptr<scalar_t>(),
                     *s = scale.const_data_ptr<scalar_t>(), *g = dy.const_data_ptr<scalar_t>();
      const scalar_t* more = residual.defined() ? residual.const_data_ptr<scalar_t>() : nullptr;
      scalar_t* out = input.data_ptr<scalar_t>();
      scalar_t* dw = wants_weight ? weight.data_ptr<scalar_t>() : nullptr;
      for (std::int64_t r = 0; r < rows; ++r) {
        NormaliseRowBackward(g + r * n, in + r * n, gain, s[r], n, out + r * n, dw);
        if (more != nullptr) AddTo(more + r * n, n, out + r * n);
      }
    });
  }
};

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
    const NormGradients d(gradients[0].contiguous(), saved[0], saved[1], saved[2], {},
                          context->needs_input_grad(1));
    return {d.input, d.weight, at::Tensor()};
  }
};

struct SumNorm : torch::autograd::Function<SumNorm> {
  static variable_list forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& y,
                               const at::Tensor& weight, double eps) {
    const std::int64_t rows = x.size(0), n = x.size(1);
    at::Tensor sum = at::empty_like(x), normed = at::empty_like(x);
    at::Tensor scale = at::empty({rows}, x.options());
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "AddRmsNorm", [&] {
      const scalar_t *a = x.const_data_ptr<scalar_t>(), *b = y.const_data_ptr<scalar_t>(),
                     *w = weight.const_data_ptr<scalar_t>();
      scalar_t *total = sum.data_ptr<scalar_t>(), *out = normed.data_ptr<scalar_t>(),
               *s = scale.data_ptr<scalar_t>();
      for (std::int64_t r = 0; r < rows; ++r) {
        Add(a + r * n, b + r * n, n, total + r * n);
        s[r] = NormaliseRow(total + r * n, w, n, eps, out + r * n);
      }
    });
    context->save_for_backward({sum, weight, scale});
    context->set_materialize_grads(false);  // the last sum has no reader but its norm
    return {sum, normed};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor residual = gradients[0].defined() ? gradients[0].contiguous() : at::Tensor();
    const NormGradients d(gradients[1].contiguous(), saved[0], saved[1], saved[2], residual,
                          context->needs_input_grad(2));
    return {d.input, d.input, d.weight, at::Tensor()};
  }
};

}  // namespace

at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return Norm::apply(x, weight, eps);
}

SumAndNorm AddRmsNorm(const at::Tensor& x, const at::Tensor& y, const at::Tensor& weight,
                      double eps) {
  const variable_list outputs = SumNorm::apply(x, y, weight, eps);
  return {outputs[0], outputs[1]};
}

}  // namespace spes::trainer
