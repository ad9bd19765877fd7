// How long computations take on nodes that are slow for a while.
#pragma once

#include <optional>
#include <vector>

#include "sim/units.h"
#include "trainer/runtime/fault_plan.h"

namespace spes::trainer {

// The faults of kind kSlow of a stream, looked at ahead of time: what a computation takes has to be
// known when it begins.
class SlowSpells {
 public:
  SlowSpells(FaultStream faults, int nodes);

  // How long work takes that begins at `start`, after `work` at full speed: while a spell lasts it
  // goes on at 1 / factor, those of several at once multiplied. `start` of one node never goes
  // back.
  sim::Time Duration(NodeId node, sim::Time start, sim::Time work);

 private:
  struct Spell {
    sim::Time begin{0}, end{0};
    double factor = 1;
  };
  void LookUntil(sim::Time t);

  FaultStream faults_;
  std::optional<Fault> next_;
  std::vector<std::vector<Spell>> spells_;  // [node]: that are not over
};

}  // namespace spes::trainer
