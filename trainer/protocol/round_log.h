// The round at hand as the log will show it: sums over the results that have arrived.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/recorder.h"
#include "trainer/protocol/messages.h"
#include "trainer/protocol/schedule.h"
#include "trainer/protocol/wire_size.h"
#include "trainer/protocol/world_update.h"
#include "trainer/sync/allocation.h"

namespace spes::trainer {

class RoundLog {
 public:
  // References must outlive it.
  RoundLog(std::shared_ptr<const BlockTable> table, analysis::Recorder& recorder);

  // The round that begins now has nothing yet.
  void Begin(std::int32_t round, const RoundPlan& plan, double now_s);

  // A result counts: records its steps. `squared_moves` [block of the offer]: ‖own − world‖₂².
  // Returns how far its node has moved from the world: ‖own − world‖₂ over the blocks offered; NaN
  // for `gradients`.
  double Accept(const Offer& offer, std::span<const double> squared_moves, bool gradients);

  // The round's world is there: rows of routing and experts, and the round's own figures.
  void Publish(const WorldUpdate& update, const Allocation& allocation, double now_s);

  // Of the round at hand; the coordinator counts in it and writes it.
  analysis::RoundRecord record;

  // [expert]: how often it was chosen so far in the run, over all layers and nodes.
  const std::vector<double>& load() const { return load_; }
  // [block]: the round of the last contribution.
  const std::vector<Version>& delivered() const { return delivered_; }
  // Throws std::invalid_argument on lists of other lengths.
  void Restore(std::vector<double> load, std::vector<Version> delivered);

 private:
  std::shared_ptr<const BlockTable> table_;
  analysis::Recorder& recorder_;
  std::vector<double> load_;
  std::vector<Version> delivered_;
  RoutingCounts routing_;
  double square_drift_ = 0;  // Σ over nodes of ‖own − world‖², shared blocks
  double ce_sum_ = 0;
  std::int64_t ce_steps_ = 0;
};

}  // namespace spes::trainer
