#include "trainer/optim/config.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <stdexcept>

namespace spes::trainer {

namespace {

void Require(bool holds, const char* name, double value, const char* wanted) {
  if (!holds || !std::isfinite(value)) {
    throw std::invalid_argument(fmt::format("optimizer: {} is {}; {}", name, value, wanted));
  }
}

}  // namespace

void Validate(const OptimizerConfig& c) {
  Require(c.lr > 0, "lr", c.lr, "it must be positive");
  Require(c.warmup_steps >= 0, "warmup_steps", static_cast<double>(c.warmup_steps),
          "it must not be negative");
  Require(c.decay_steps >= 0, "decay_steps", static_cast<double>(c.decay_steps),
          "it must be positive, or 0 for the run's last step");
  Require(c.final_lr_fraction >= 0 && c.final_lr_fraction <= 1, "final_lr_fraction",
          c.final_lr_fraction, "from 0 to 1");
  Require(c.beta1 >= 0 && c.beta1 < 1, "beta1", c.beta1, "at least 0 and below 1");
  Require(c.beta2 >= 0 && c.beta2 < 1, "beta2", c.beta2, "at least 0 and below 1");
  Require(c.eps > 0, "eps", c.eps, "it must be positive");
  Require(c.weight_decay >= 0, "weight_decay", c.weight_decay, "it must not be negative");
  Require(c.clip_norm >= 0, "clip_norm", c.clip_norm, "it must be positive, or 0 for no clipping");
}

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
