#include "trainer/model/cross_entropy.h"

#include <cmath>
#include <stdexcept>
#include <string>

#include "trainer/model/autograd.h"
#include "trainer/model/vector_math.h"

namespace spes::trainer {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// logsumexp of n values; `scratch` [n].
template <class T>
T LogSumExp(const T* __restrict z, std::int64_t n, T* __restrict scratch) {
  const T largest = Max(z, n);
  for (std::int64_t i = 0; i < n; ++i) scratch[i] = Exp(z[i] - largest);
  return largest + std::log(Sum(scratch, n));
}

// factor · softmax(z), given logsumexp(z).
template <class T>
void ScaledSoftmax(const T* __restrict z, T lse, T factor, std::int64_t n, T* __restrict p) {
  for (std::int64_t i = 0; i < n; ++i) p[i] = factor * Exp(z[i] - lse);
}

struct OutputLoss : torch::autograd::Function<OutputLoss> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& logits,
                            const at::Tensor& targets, double z_loss) {
    const std::int64_t N = logits.size(0), V = logits.size(1);
    const std::int32_t* target = targets.const_data_ptr<std::int32_t>();
    at::Tensor lse = at::empty({N}, logits.options()), losses = at::empty({2}, logits.options());
    at::Tensor exponentials = at::empty({V}, logits.options());
    AT_DISPATCH_FLOATING_TYPES(logits.scalar_type(), "CrossEntropy", [&] {
      const scalar_t* z = logits.const_data_ptr<scalar_t>();
      scalar_t *e = exponentials.data_ptr<scalar_t>(), *l = lse.data_ptr<scalar_t>();
      double ce = 0, square = 0;
      for (std::int64_t n = 0; n < N; ++n, z += V) {
        if (target[n] < 0 || target[n] >= V) {
          throw std::runtime_error("token " + std::to_string(target[n]) +
                                   " is outside the model's vocabulary of " + std::to_string(V));
        }
        l[n] = LogSumExp(z, V, e);
        ce += static_cast<double>(l[n] - z[target[n]]);
        square += static_cast<double>(l[n]) * static_cast<double>(l[n]);
      }
      losses.data_ptr<scalar_t>()[0] = static_cast<scalar_t>(ce / static_cast<double>(N));
      losses.data_ptr<scalar_t>()[1] =
          static_cast<scalar_t>(z_loss * square / static_cast<double>(N));
    });
    context->save_for_backward({logits, targets, lse});
    context->saved_data["z_loss"] = z_loss;
    return losses;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &logits = saved[0], &lse = saved[2];
    const std::int32_t* target = saved[1].const_data_ptr<std::int32_t>();
    const at::Tensor dlosses = gradients[0].contiguous();
    const std::int64_t N = logits.size(0), V = logits.size(1);
    at::Tensor dlogits = at::empty_like(logits);
    AT_DISPATCH_FLOATING_TYPES(logits.scalar_type(), "CrossEntropy", [&] {
      const scalar_t *z = logits.const_data_ptr<scalar_t>(), *l = lse.const_data_ptr<scalar_t>(),
                     *d = dlosses.const_data_ptr<scalar_t>();
      scalar_t* dz = dlogits.data_ptr<scalar_t>();
      const scalar_t per_token = d[0] / static_cast<scalar_t>(N);
      const scalar_t z_factor =
          d[1] * static_cast<scalar_t>(2 * context->saved_data["z_loss"].toDouble() /
                                       static_cast<double>(N));
      for (std::int64_t n = 0; n < N; ++n, z += V, dz += V) {
        ScaledSoftmax(z, l[n], per_token + z_factor * l[n], V, dz);
        dz[target[n]] -= per_token;
      }
    });
    return {dlogits, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor CrossEntropy(const at::Tensor& logits, const at::Tensor& targets, double z_loss) {
  return OutputLoss::apply(logits, targets, z_loss);
}

}  // namespace spes::trainer
