#include "trainer/model/linear.h"

#include "trainer/model/autograd.h"
#include "trainer/model/gemm.h"

namespace spes::trainer {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Projection : torch::autograd::Function<Projection> {
  static variable_list forward(AutogradContext* context, const at::Tensor& x,
                               at::TensorList weights) {
    const std::int64_t rows = x.size(0), in = x.size(1);
    variable_list outputs, saved{x};
    for (const at::Tensor& weight : weights) {
      const std::int64_t out = weight.size(0);
      outputs.push_back(at::empty({rows, out}, x.options()));
      AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "Project", [&] {
        Gemm(Op::kPlain, Op::kTransposed, rows, out, in, scalar_t{1}, x.const_data_ptr<scalar_t>(),
             in, weight.const_data_ptr<scalar_t>(), in, scalar_t{0},
             outputs.back().data_ptr<scalar_t>(), out);
      });
      saved.push_back(weight);
    }
    context->save_for_backward(std::move(saved));
    return outputs;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const std::int64_t rows = x.size(0), in = x.size(1);
    variable_list results(saved.size());
    if (context->needs_input_grad(0)) results[0] = at::empty_like(x);
    for (std::size_t w = 0; w < gradients.size(); ++w) {
      const at::Tensor& weight = saved[w + 1];
      const at::Tensor dy = gradients[w].contiguous();
      const std::int64_t out = weight.size(0);
      if (context->needs_input_grad(w + 1)) results[w + 1] = at::empty_like(weight);
      AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "Project", [&] {
        const scalar_t* dy_data = dy.const_data_ptr<scalar_t>();
        if (results[0].defined()) {
          Gemm(Op::kPlain, Op::kPlain, rows, in, out, scalar_t{1}, dy_data, out,
               weight.const_data_ptr<scalar_t>(), in, static_cast<scalar_t>(w == 0 ? 0 : 1),
               results[0].data_ptr<scalar_t>(), in);
        }
        if (results[w + 1].defined()) {
          Gemm(Op::kTransposed, Op::kPlain, out, in, rows, scalar_t{1}, dy_data, out,
               x.const_data_ptr<scalar_t>(), in, scalar_t{0}, results[w + 1].data_ptr<scalar_t>(),
               in);
        }
      });
    }
    return results;
  }
};

}  // namespace

std::vector<at::Tensor> Project(const at::Tensor& x, at::TensorList weights) {
  return Projection::apply(x, weights);
}

}  // namespace spes::trainer
