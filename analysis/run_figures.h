// One run in one row: what a table of many runs says of it.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "analysis/hdf5/log_reader.h"

namespace spes::analysis {

// Held-out cross-entropies in nats per token; NaN without an evaluation.
struct LossFigures {
  double last = std::numeric_limits<double>::quiet_NaN();
  double best = std::numeric_limits<double>::quiet_NaN();  // lowest of all evaluations
};

struct RunFigures {
  std::map<std::string, LossFigures> losses;  // by domain
  LossFigures mean_loss;                      // of the mean over the domains
  // At the end of the first round whose evaluation reaches the target; NaN where none does.
  double target_s = std::numeric_limits<double>::quiet_NaN();      // virtual
  double target_bytes = std::numeric_limits<double>::quiet_NaN();  // up and down, all nodes
  std::int64_t rounds = 0, steps = 0, tokens = 0;                  // steps of a node, tokens of all
  double virtual_s = 0;                                            // at the end
  std::int64_t up_bytes = 0, down_bytes = 0;                       // all nodes
  double node_up_bytes = 0, node_down_bytes = 0;                   // means over the nodes
  double node_memory_bytes = 0;                                    // predicted, mean over the nodes
  double node_memory_max_bytes = 0;                                // of the node that needs most
  // Of the machine that it ran on, and different each time.
  double wall_s = std::numeric_limits<double>::quiet_NaN();
  double work_s = 0;                // real work of all training steps
  double process_memory_bytes = 0;  // largest, measured; 0 where not known
};

// `target`: losses to reach, all of them, by domain; "" is the mean over the domains. Empty: none.
RunFigures FiguresOf(const RunLog& log, const std::map<std::string, double>& target);

}  // namespace spes::analysis
