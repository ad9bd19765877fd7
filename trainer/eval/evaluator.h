// Held-out loss of a published world.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "trainer/data/batch.h"
#include "trainer/model/config.h"
#include "trainer/sync/world.h"

namespace spes::trainer {

struct EvalResult {
  std::int64_t tokens = 0;
  double ce = 0;  // mean cross-entropy alone, nats per token
};

// Mean over all samples of `batches`, computed on `device` ("cpu", "cuda:N") in the model's own
// type; thread-safe, so that several worlds and domains are evaluated side by side. Returns early
// with tokens = 0 when `stop` is set.
EvalResult Evaluate(const ModelConfig& config, const World& world, std::span<const Batch> batches,
                    const std::atomic<bool>& stop, const std::string& device = "cpu");

}  // namespace spes::trainer
