// How much a router would send of a sequence to some of the experts, before any layer has run.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "trainer/data/batch.h"
#include "trainer/model/config.h"

namespace spes::trainer {

// What the estimate is made from: the first layer with experts sees the embedding of a token alone,
// its own norm applied, as if attention added nothing.
struct AffinityInputs {
  at::Tensor embed;   // [V, D]
  at::Tensor norm;    // [D], of the first layer's experts
  at::Tensor router;  // [E, D], of the first layer
};

// For each of the batch's sequences the mean over its input tokens of the router's probability of
// the experts `own` (ascending indices). All 0 without any.
std::vector<double> RouterAffinity(const ModelConfig& config, const AffinityInputs& inputs,
                                   const std::vector<std::int64_t>& own, const Batch& batch);

// Keeps the `sequences` rows of the batch with the largest affinities, in the order in which they
// were drawn; of equal ones the earlier.
void KeepNearest(const std::vector<double>& affinity, std::int64_t sequences, Batch& batch);

}  // namespace spes::trainer
