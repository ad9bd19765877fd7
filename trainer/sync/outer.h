// The optimiser of the world: how what the nodes' results are reduced to moves the published value.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/sync/block_table.h"

namespace spes::trainer {

// SGD with Nesterov momentum on the pseudo-gradient Δ = world − reduced (DiLoCo, arXiv 2311.08105):
//   v ← μ v + Δ,  world ← world − lr (Δ + μ v).
struct OuterConfig {
  bool nesterov = false;  // otherwise the reduced value is the new one
  double lr = 0.7, momentum = 0.9;
};

// Throws std::invalid_argument, one line, unless lr > 0 and 0 ≤ momentum < 1.
void Validate(const OuterConfig& config);

// Holds one velocity per block that has been stepped.
class OuterOptimizer {
 public:
  explicit OuterOptimizer(std::shared_ptr<const BlockTable> table);

  // The new value of `id` from the published one and the reduction of what the nodes sent.
  SharedBuffer Step(const OuterConfig& config, BlockId id, const Buffer& world,
                    const Buffer& reduced);

  // [block], null: zero. Shared, and written on by Step.
  using Velocities = std::vector<std::shared_ptr<Buffer>>;
  const Velocities& velocity() const { return velocity_; }
  void Restore(Velocities velocity) { velocity_ = std::move(velocity); }

  // Bytes of all velocities.
  std::int64_t StateBytes() const;

 private:
  std::shared_ptr<const BlockTable> table_;
  Velocities velocity_;
};

}  // namespace spes::trainer
