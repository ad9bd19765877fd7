// A run as text for the terminal: the live line and the table at the end.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "analysis/run_summary.h"

namespace spes::analysis {

// Losses of the simplest models on the same held-out text, in nats per token; NaN where not known.
struct Baseline {
  std::string domain = {};
  double unigram = 0, bigram = 0;
};

// What the summary says besides the run's own figures.
struct SummaryContext {
  std::string scenario = {};                   // name
  std::string log_path = {}, world_path = {};  // empty: not written
  std::vector<Baseline> baselines = {};
  // What one round of full averaging moves up, and as much down, for each node: every parameter.
  std::int64_t full_round_bytes = 0;
  std::int64_t full_memory_bytes = 0;  // of a node that trains every parameter
  // Wall time of the parts of the program that took it, in seconds; what is left of the whole is
  // shown as "other".
  std::vector<std::pair<std::string, double>> wall_parts = {};
  double wall_s = 0;
  std::vector<std::string> notes = {};
};

// At most 100 columns, no line break. `wall_s`: seconds since the training began.
std::string ProgressLine(const Progress& progress, double wall_s);

// Lines of at most 100 columns (paths may be longer), the last one ended too. Sections without any
// figures are left away.
std::string SummaryText(const RunTotals& run, const SummaryContext& context);

}  // namespace spes::analysis
