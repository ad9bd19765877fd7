// What a coordinator must still know when it begins anew.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trainer/optim/adamw.h"
#include "trainer/sync/world.h"

namespace spes::trainer {

// What outlives a round in WorldUpdater. Shared with its owner, who goes on writing: a reader is
// done with it before the next round is reduced.
struct UpdaterState {
  std::vector<std::shared_ptr<Buffer>> velocity;   // [block]; null: zero
  std::vector<std::shared_ptr<AdamMoments>> adam;  // [block]; empty but for data-parallel training
  std::map<BlockId, std::shared_ptr<Buffer>> residuals;  // of blocks that were coded
};

struct NodeStanding {
  std::string quarantine;  // why nothing of it is taken any more; empty: it is trusted
  bool reset = false;      // its last result was not finite: it is to forget its optimiser's state
  bool lost = false;       // it was given up
  std::int64_t steps_done = 0;  // of the results that it has sent, whatever became of them
  bool operator==(const NodeStanding&) const = default;
};

// After a round was reduced, before anyone has been told.
struct CoordinatorState {
  std::string scenario_hash;
  std::uint64_t run = 0;   // the same in all states of one run, another in every other run
  std::int32_t round = 0;  // the last one that is done; 0: none
  std::int64_t step = 0;
  double now_s = 0;                           // the run's clock
  std::int64_t up_bytes = 0, down_bytes = 0;  // so far
  std::string initial_hash;                   // of the world before the first round
  World world;
  std::vector<SharedMoments> moments;  // [block]: published with it; may be null
  UpdaterState updater;
  std::vector<std::vector<BlockId>> allocation;  // [node]: ascending
  std::vector<NodeStanding> nodes;
  std::vector<double> load;        // [expert], see RoundLog
  std::vector<Version> delivered;  // [block], see RoundLog
  std::vector<double> norms;       // what update norms have been like, see trust.h
};

}  // namespace spes::trainer
