// Reading a run log: finished, running, or left behind by a crash.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "analysis/records.h"

namespace spes::analysis {

struct RunLog {
  RunInfo info;
  std::string status;      // running (also after a crash), complete, interrupted, failed
  std::string world_hash;  // empty until the end
  std::string program_version;
  std::string host;
  double wall_s = std::numeric_limits<double>::quiet_NaN();  // from the log's making to its end
  std::vector<StepRecord> steps;
  std::vector<RoundRecord> rounds;
  std::vector<NodeRoundRecord> node_rounds;
  std::vector<FlowRecord> flows;
  std::vector<LinkRecord> links;
  std::vector<ExpertRecord> experts;
  std::vector<RoutingRecord> routing;
  std::vector<EvalRecord> evals;
  std::vector<MemoryRecord> memory;
  std::vector<EventRecord> events;
};

// Changes nothing in the file: marks that a crashed writer left are read over, not cleared. A table
// or column that an older program did not write is empty, or has its record's default. Throws
// std::runtime_error, one line, when the file is absent, not a run log, or of a newer schema.
RunLog ReadRunLog(const std::string& path);

// The same without the tables' rows, whatever their length.
RunLog ReadRunLogHead(const std::string& path);

}  // namespace spes::analysis
