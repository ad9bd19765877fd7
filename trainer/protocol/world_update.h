// From what the nodes' results were reduced to, to the next published world.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "trainer/optim/adamw.h"
#include "trainer/optim/config.h"
#include "trainer/protocol/coordinator_state.h"
#include "trainer/protocol/messages.h"
#include "trainer/sync/codec.h"
#include "trainer/sync/merge.h"
#include "trainer/sync/outer.h"
#include "trainer/sync/reduction.h"
#include "trainer/sync/residuals.h"

namespace spes::trainer {

struct WorldUpdateConfig {
  OuterConfig outer_shared, outer_experts;
  MergeConfig merge;
  CodecConfig codec;  // of what is published
  // Data-parallel training: the nodes send gradients, and this optimiser takes the step.
  std::optional<OptimizerConfig> gradients = {};
};

struct WorldUpdate {
  World world;
  // [block], see Reduction::Result; kComputed too where the published value is not the contribution
  // to the bit.
  std::vector<int> source;
  std::vector<bool> contributed;       // [block]
  std::vector<SharedCode> codes;       // [block]: of what changed; null: raw
  std::vector<SharedMoments> moments;  // [block]: where they came along
  double alpha = 0;
  // [layer] of [E, E], empty for layers without experts; the second only where experts were merged.
  std::vector<std::vector<double>> similarities, merged_similarities;
  std::vector<double> update_norms;  // [block]
  double shared_square_move = 0;     // ‖reduced − before‖₂² of the shared blocks
};

// Keeps what outlives a round: outer momenta, the optimiser of data-parallel training, and what
// coding has lost.
class WorldUpdater {
 public:
  WorldUpdater(const WorldUpdateConfig& config, std::shared_ptr<const BlockTable> table);

  // In this order: the outer optimiser (or the step with the mean gradients), expert merging with
  // `alpha` > 0, coding. `reduced`: of the round with number `version`, that ends at step `step`.
  // Throws std::runtime_error when a value is not finite.
  WorldUpdate Update(const World& before, Reduction::Result reduced, Version version,
                     std::int64_t step, double alpha);

  // Whether what is published is written down as codes.
  bool codes() const { return !IsPlain(config_.codec); }

  // What outlives a round; see UpdaterState.
  UpdaterState State() const;
  // Throws std::invalid_argument, one line, on a state of another model or of other settings.
  void Restore(UpdaterState state);

  // Bytes of all that is kept between rounds.
  std::int64_t StateBytes() const;

 private:
  void StepOuter(const World& before, Version version, WorldUpdate& update);
  void StepGradients(const World& before, Version version, std::int64_t step, WorldUpdate& update);
  void Merge(Version version, WorldUpdate& update) const;
  void Code(const World& before, Version version, WorldUpdate& update);

  WorldUpdateConfig config_;
  std::shared_ptr<const BlockTable> table_;
  OuterOptimizer outer_;
  std::vector<std::shared_ptr<AdamMoments>> moments_;  // [block], of data-parallel training
  Residuals residuals_;
};

}  // namespace spes::trainer
