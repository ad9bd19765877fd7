// When rounds end and which blocks each of them synchronises.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/sync/block_table.h"

namespace spes::trainer {

struct ScheduleConfig {
  std::int64_t total_steps = 0;  // of every node, from 1
  int every = 0;                 // H: local steps between two synchronisations of a block
  int experts_every = 0;         // the same of experts, a multiple or divisor of it; 0: as all
  // H of the first round. It grows by `growth` from round to round until it is `every`. 0: `every`
  // from the start. Only where every round synchronises all blocks.
  int first = 0;
  double growth = 2;
  // P: blocks are shared out among so many fragments, which take turns, each every H steps
  // (Streaming DiLoCo, arXiv 2501.18512); strided by layer.
  int fragments = 1;
  int overlap = 0;  // τ: steps that nodes train on while a round's result is on its way
};

// Throws std::invalid_argument, one line, where these do not go together: more fragments than steps
// between synchronisations, an overlap as long as a round or longer, intervals of which neither
// divides the other, growth with fragments or two intervals.
void Validate(const ScheduleConfig& config);

struct RoundPlan {
  std::int64_t first_step = 0;
  std::int32_t steps = 0;
  std::int32_t ahead = 0;  // steps of the next round that may be trained before this one's result
  int due = 0;             // index into Schedule::due

  std::int64_t last_step() const { return first_step + steps - 1; }
};

// All rounds of a run. A round ends at each step at which some block is due; after the last step
// all are. Immutable.
class Schedule {
 public:
  // Validates.
  Schedule(const ScheduleConfig& config, const BlockTable& table);

  std::int32_t rounds() const { return static_cast<std::int32_t>(rounds_.size()); }
  const RoundPlan& round(std::int32_t round) const {  // from 1
    return rounds_[static_cast<std::size_t>(round - 1)];
  }

  // [block]: what is due together. The set 0 is all blocks.
  const std::vector<bool>& due(int set) const { return due_[static_cast<std::size_t>(set)]; }
  bool IsDue(std::int32_t round_number, BlockId id) const {
    return due(round(round_number).due)[static_cast<std::size_t>(id)];
  }

  // Whether all experts of all layers are due: then they may be merged.
  bool AllExpertsDue(std::int32_t round_number) const {
    return all_experts_[static_cast<std::size_t>(round(round_number).due)];
  }

 private:
  int SetOf(std::vector<bool> due);

  std::vector<RoundPlan> rounds_;
  std::vector<std::vector<bool>> due_;  // [set][block]
  std::vector<bool> all_experts_;       // [set]
};

}  // namespace spes::trainer
