#include "trainer/optim/config.h"

#include <cmath>
#include <numbers>

namespace spes::trainer {

double LearningRate(const OptimizerConfig& config, std::int64_t t) {
  const double lr = config.lr, f = config.final_lr_fraction;
  if (t < config.warmup_steps) {
    return lr * (f + (1 - f) * static_cast<double>(t) / static_cast<double>(config.warmup_steps));
  }
  if (t >= config.decay_steps) return f * lr;
  const double done = static_cast<double>(t - config.warmup_steps) /
                      static_cast<double>(config.decay_steps - config.warmup_steps);
  return f * lr + (1 - f) * lr * (1 + std::cos(std::numbers::pi * done)) / 2;
}

}  // namespace spes::trainer
