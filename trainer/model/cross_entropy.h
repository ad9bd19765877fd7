// The loss of the output.
#pragma once

#include <ATen/core/Tensor.h>

namespace spes::trainer {

// logits [N, V], targets [N] int32 → [2]: mean cross-entropy in nats, and z_loss ·
// mean(logsumexp²). Throws std::runtime_error on a target outside the vocabulary.
at::Tensor CrossEntropy(const at::Tensor& logits, const at::Tensor& targets, double z_loss);

}  // namespace spes::trainer
