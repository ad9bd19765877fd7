// The model before training.
#pragma once

#include <cstdint>
#include <memory>

#include "trainer/model/config.h"
#include "trainer/sync/world.h"

namespace spes::trainer {

// Matrices truncated normal(0, init_std, ±3σ), norms 1. Each matrix draws from its own stream
// (seed, part name): the same seed gives the same model whatever else is in it and whoever makes
// it. Version 0.
World MakeInitialWorld(const ModelConfig& config, std::shared_ptr<const BlockTable> table,
                       std::uint64_t seed);

}  // namespace spes::trainer
