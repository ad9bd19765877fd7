// What a run comes to while it goes on and when it is over: the figures that the terminal shows.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/recorder.h"

namespace spes::analysis {

// What a run is meant to do.
struct RunPlan {
  std::int32_t nodes = 0;
  std::int64_t steps = 0;  // of each node
  std::int32_t rounds = 0;
  bool real = false;              // on real machines: time is the wall clock's
  std::int32_t first_round = 1;   // of this process, where a run is resumed
  std::int64_t steps_before = 0;  // of each node, likewise
};

// Where a run stands.
struct Progress {
  std::int32_t round = 0, rounds = 0;  // the one under way, from 1
  double virtual_s = 0;
  double done = 0;                 // share of all nodes' steps, 0 to 1
  double done_before = 0;          // of that, what the processes before this one did
  std::int64_t tokens = 0;         // trained so far, all nodes
  std::int64_t tokens_before = 0;  // as done_before
  double ce = 0;      // mean over the nodes of each one's latest step; NaN before the first
  bool real = false;  // as in RunPlan
};

// One node over all rounds that it took part in.
struct NodeTotals {
  std::int32_t node = 0, rounds = 0;
  double compute_s = 0, up_s = 0, wait_s = 0, down_s = 0;
  std::int64_t up_bytes = 0, down_bytes = 0;
  double total_s() const { return compute_s + up_s + wait_s + down_s; }
};

// One direction of a link over the whole run.
struct LinkTotals {
  std::string name = {};
  std::int64_t wire_bytes = 0;
  // Wire bytes ÷ what the link could have carried. Times without a row count at its mean capacity
  // in those with one: exact for a link whose capacity is constant or that has rows all the time.
  double utilisation = 0;
};

struct RunTotals {
  RunStatus status = RunStatus::kRunning;
  std::string world_hash = {};
  RunPlan plan = {};
  std::int32_t rounds = 0;  // published, those before the run was resumed too
  std::int64_t steps = 0;   // of the node that did most, likewise
  std::int64_t tokens = 0;
  double virtual_s = 0;
  std::vector<NodeTotals> nodes = {};           // by node; only those with a finished round
  std::vector<EvalRecord> evals = {};           // the latest of each domain
  std::vector<double> node_memory_bytes = {};   // predicted, by node
  double process_memory_bytes = 0;              // measured; 0 where not known
  std::optional<LinkTotals> busiest_link = {};  // of the highest utilisation
  std::map<std::string, int> faults = {};       // simulated ones by kind
  double down_s = 0;  // while processes were down because of them, all together
};

// Adds up; keeps no rows.
class RunSummary final : public Recorder {
 public:
  explicit RunSummary(RunPlan plan);

  void Record(const StepRecord& r) override;
  void Record(const RoundRecord& r) override;
  void Record(const NodeRoundRecord& r) override;
  void Record(const FlowRecord&) override {}
  void Record(const LinkRecord& r) override;
  void Record(const ExpertRecord&) override {}
  void Record(const RoutingRecord&) override {}
  void Record(const EvalRecord& r) override;
  void Record(const MemoryRecord& r) override;
  void Record(const EventRecord& r) override;
  void Flush() override {}
  void Finish(RunStatus status, const std::string& world_hash) override;

  Progress progress() const;
  RunTotals totals() const;

 private:
  struct LinkSums {
    std::string name;
    std::int64_t wire_bytes = 0, capacity_bytes = 0;
    double duration_s = 0;
  };

  std::optional<LinkTotals> BusiestLink() const;

  RunTotals totals_;  // without what the maps below hold
  std::int32_t round_ = 0;
  std::int64_t steps_done_ = 0;  // all nodes
  std::map<std::int32_t, double> latest_ce_;
  std::map<std::int32_t, NodeTotals> nodes_;
  std::map<std::int32_t, LinkSums> links_;
  double links_until_s_ = 0;
  std::map<std::int32_t, double> down_since_s_;  // of processes that are down
  std::map<std::int32_t, double> memory_;
};

}  // namespace spes::analysis
