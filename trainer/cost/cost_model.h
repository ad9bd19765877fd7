// What a training step costs in virtual time.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/units.h"

namespace spes::trainer {

enum class ComputeCost {
  kFixed,     // step_time for every step
  kFlops,     // operations of the step ÷ (device_flops × efficiency)
  kMeasured,  // timed once at start on this machine, then the same for all
};

struct CostConfig {
  ComputeCost kind = ComputeCost::kFixed;
  sim::Time step_time =
      std::chrono::milliseconds(500);  // kFixed; filled in by the calibration of kMeasured
  double device_flops = 1e12;          // peak, floating-point operations per second
  double efficiency = 0.4;             // of the peak
  double jitter = 0;  // standard deviation of a step's log-time; its mean stays the same
};

// Virtual durations, a function of (seed, node, step) alone: the same whatever the order of the
// calls.
class CostModel {
 public:
  // `speed` [nodes]: relative to the device, 0.5 takes twice as long. `flops_per_step`: of kFlops.
  // Throws std::invalid_argument when a speed or a rate is not positive.
  CostModel(const CostConfig& config, std::vector<double> speed, double flops_per_step,
            std::uint64_t seed);

  sim::Time StepTime(int node, std::int64_t step) const;

 private:
  double base_s_;
  double jitter_;
  std::vector<double> speed_;
  std::uint64_t seed_;
};

}  // namespace spes::trainer
