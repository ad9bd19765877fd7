#include "trainer/optim/aten_adamw.h"

#include <cmath>

#include "trainer/model/autograd.h"

namespace spes::trainer {

double SquaredNorm(at::TensorList gradients) {
  if (gradients.empty()) return 0;
  std::vector<at::Tensor> squares;
  squares.reserve(gradients.size());
  for (const at::Tensor& g : gradients) squares.push_back(g.square().sum(at::kDouble));
  return at::stack(squares).sum().item<double>();
}

void AdamWUpdate(const OptimizerConfig& config, double lr, double factor, at::TensorList gradients,
                 at::TensorList values, at::TensorList first, at::TensorList second,
                 const std::vector<std::int64_t>& updates) {
  if (gradients.empty()) return;
  std::vector<at::Scalar> steps, roots;
  for (const std::int64_t count : updates) {
    const double n = static_cast<double>(count);
    steps.emplace_back(-lr / (1 - std::pow(config.beta1, n)));
    roots.emplace_back(1 / std::sqrt(1 - std::pow(config.beta2, n)));
  }
  at::_foreach_mul_(gradients, factor);
  at::_foreach_mul_(first, config.beta1);
  at::_foreach_add_(first, gradients, 1 - config.beta1);
  at::_foreach_mul_(second, config.beta2);
  at::_foreach_addcmul_(second, gradients, gradients, 1 - config.beta2);
  at::_foreach_copy_(gradients, second);
  at::_foreach_sqrt_(gradients);
  at::_foreach_mul_(gradients, roots);
  at::_foreach_add_(gradients, config.eps);
  at::_foreach_mul_(values, 1 - lr * config.weight_decay);
  at::_foreach_addcdiv_(values, first, gradients, steps);
}

}  // namespace spes::trainer
