#include "trainer/cost/cost_model.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <stdexcept>

#include "trainer/data/keyed_random.h"

namespace spes::trainer {

namespace {

double OpenUniform(std::uint64_t bits) {  // in (0, 1): its logarithm is finite
  return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53;
}

// Standard normal by Box and Muller's formula.
double Normal(std::uint64_t key) {
  const double u = OpenUniform(Mix(key)), v = OpenUniform(Mix(key ^ 0x5851f42d4c957f2d));
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

}  // namespace

CostModel::CostModel(const CostConfig& config, std::vector<double> speed, double flops_per_step,
                     std::uint64_t seed)
    : base_s_(config.kind == ComputeCost::kFlops
                  ? flops_per_step / (config.device_flops * config.efficiency)
                  : sim::ToSeconds(config.step_time)),
      jitter_(config.jitter),
      speed_(std::move(speed)),
      seed_(seed) {
  if (!(base_s_ >= 0) || !std::isfinite(base_s_)) {
    throw std::invalid_argument("a step's virtual time is not a finite number of seconds");
  }
  for (std::size_t n = 0; n < speed_.size(); ++n) {
    if (!(speed_[n] > 0)) {
      throw std::invalid_argument(
          fmt::format("node {}: a speed of {} is not positive", n, speed_[n]));
    }
  }
}

sim::Time CostModel::StepTime(int node, std::int64_t step) const {
  double seconds = base_s_ / speed_[static_cast<std::size_t>(node)];
  if (jitter_ > 0) {
    const double z = Normal(
        Mix(Mix(Mix(seed_) + static_cast<std::uint64_t>(node)) + static_cast<std::uint64_t>(step)));
    seconds *= std::exp(jitter_ * z - jitter_ * jitter_ / 2);
  }
  return sim::FromSeconds(seconds);
}

}  // namespace spes::trainer
