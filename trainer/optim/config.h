// Settings of the local training step.
#pragma once

#include <cstdint>

namespace spes::trainer {

struct OptimizerConfig {
  double lr = 3e-3;  // the peak of the schedule
  std::int64_t warmup_steps = 20;
  std::int64_t decay_steps = 0;  // t_max, the step at which the cosine ends; 0: the run's last step
  double final_lr_fraction = 0.1;  // of `lr`: where the warm-up starts and the cosine ends
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  double weight_decay = 0.1;
  double clip_norm = 1.0;  // global L2 norm; 0: no clipping
};

// Throws std::invalid_argument, one line, on values out of range. decay_steps 0 is allowed.
void Validate(const OptimizerConfig& config);

// Learning rate of step t (from 1): linear from f·lr to lr over the warm-up, cosine to f·lr at
// decay_steps, then constant. decay_steps 0 must have been replaced by the run's last step.
double LearningRate(const OptimizerConfig& config, std::int64_t t);

}  // namespace spes::trainer
