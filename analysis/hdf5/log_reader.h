// Reading a run log: finished, running, or left behind by a crash.
#pragma once

#include <string>
#include <vector>

#include "analysis/records.h"

namespace spes::analysis {

struct RunLog {
  RunInfo info;
  std::string status;      // running, complete, interrupted, failed
  std::string world_hash;  // empty until the end
  std::string program_version;
  std::vector<StepRecord> steps;
  std::vector<RoundRecord> rounds;
  std::vector<NodeRoundRecord> node_rounds;
  std::vector<FlowRecord> flows;
  std::vector<ExpertRecord> experts;
  std::vector<RoutingRecord> routing;
  std::vector<EvalRecord> evals;
  std::vector<MemoryRecord> memory;
  std::vector<EventRecord> events;
};

// Throws std::runtime_error, one line, when the file is absent, not a run log, or of a newer
// schema.
RunLog ReadRunLog(const std::string& path);

}  // namespace spes::analysis
