// Which experts a token goes to, and the two losses that keep the router healthy.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace spes::trainer {

struct RouterOptions {
  std::int64_t experts_per_token = 0;  // K
  bool renormalise = false;            // the K weights sum to 1
  double load_balance = 0;             // factor of E · Σ f P of this layer
  double z = 0;                        // factor of mean(logsumexp²) of this layer
  // [E], positive: what the probabilities are multiplied by when the K best are chosen, and only
  // then (a bias b on the logits is a factor of exp b). Null: 1.
  const double* preference = nullptr;
};

// The T·B·K routed slots in the order of their experts, tokens ascending within each.
struct Dispatch {
  at::Tensor slots;    // [N·K] int32: token · K + rank
  at::Tensor offsets;  // [E + 1] int64: expert e's slots are offsets[e] … offsets[e + 1] − 1
  std::int64_t Slots(std::int64_t expert) const;
};

struct Routing {
  at::Tensor weights;  // [N, K]: the router's probabilities of the K best experts, best first
  at::Tensor losses;   // [2]: load-balance loss and router z-loss of this layer
  Dispatch dispatch;
  double entropy_sum = 0;  // Σ over tokens of the router distribution's entropy, nats
};

// logits [N, E]. Equal logits: the expert with the lower index comes first.
Routing Route(const at::Tensor& logits, const RouterOptions& options);

}  // namespace spes::trainer
