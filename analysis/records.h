// The rows of the run log, one struct per table. Units are in the field names; all times are
// virtual unless the name says wall.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace spes::analysis {

// One optimiser step of one node. Losses in nats, means over the step's tokens.
struct StepRecord {
  std::int32_t node = 0;
  std::int64_t step = 0;  // from 1, over the whole run
  std::int32_t round = 0;
  double virtual_s = 0;  // end of the step
  double wall_s = 0;     // duration of the real work
  std::int64_t tokens = 0;
  double ce = 0, z = 0, lb = 0, rz = 0;
  double grad_norm = 0;  // before clipping
  double lr = 0;
  bool operator==(const StepRecord&) const = default;
};

// One round of the whole run, written when its world is published.
struct RoundRecord {
  std::int32_t round = 0;  // from 1
  std::int64_t first_step = 0, last_step = 0;
  double start_s = 0, end_s = 0;
  std::int32_t members = 0, arrived = 0, late = 0, rejected = 0;
  std::int64_t up_bytes = 0, down_bytes = 0;  // payload and framing, all nodes
  // Of these, the values of blocks, or the codes that stand for them, and optimiser moments.
  std::int64_t up_shared_bytes = 0, up_expert_bytes = 0, up_moment_bytes = 0;
  std::int64_t down_shared_bytes = 0, down_expert_bytes = 0, down_moment_bytes = 0;
  double alpha = 0;        // of the merge; 0 where none took place
  double mean_ce = 0;      // over the round's steps and nodes
  double update_norm = 0;  // ‖world after − world before‖₂
  // Root mean square over nodes of ‖own − mean‖₂, shared blocks, before they were averaged. Exact
  // for the mean with equal weights; NaN where nodes send gradients.
  double spread = 0;
  bool operator==(const RoundRecord&) const = default;
};

// One node's share of a round; its time is the sum of the four parts.
struct NodeRoundRecord {
  std::int32_t round = 0, node = 0;
  double start_s = 0;
  double compute_s = 0, up_s = 0, wait_s = 0, down_s = 0;
  std::int64_t up_bytes = 0, down_bytes = 0;
  std::int32_t arrived = 0, late = 0;  // 0 or 1
  double drift = 0;  // ‖own − world‖₂ of what it offered; NaN where nodes send gradients
  bool operator==(const NodeRoundRecord&) const = default;
};

struct FlowRecord {
  std::uint64_t flow = 0;
  std::int32_t from = 0, to = 0;  // nodes; the coordinator is −1, further ones −2, −3, …
  std::string message = {};       // kind of the message carried, or the exchange pattern
  std::int32_t round = 0;
  double start_s = 0, end_s = 0;
  std::int64_t bytes = 0, wire_bytes = 0, retransmitted_bytes = 0, retransmissions = 0, drops = 0;
  double rtt_min_s = 0, rtt_mean_s = 0;  // NaN where not measured
  double goodput_bps = 0;
  std::string outcome = {};
  bool operator==(const FlowRecord&) const = default;
};

// What one direction of a link carried in a span of time. Spans of a link do not overlap, and one
// in which it was silent has no row.
struct LinkRecord {
  double start_s = 0, end_s = 0;
  std::int32_t link = 0;            // index, from 0
  std::string name = {};            // "node 3 up", "ohio → tokyo"
  std::int64_t capacity_bytes = 0;  // could have passed: traces, outages, cross traffic considered
  std::int64_t wire_bytes = 0;  // payload, headers, retransmissions, acknowledgements, of anyone
  double utilisation = 0;       // wire ÷ capacity, may pass 1 by a packet; NaN without capacity
  std::int64_t dropped_packets = 0;
  bool operator==(const LinkRecord&) const = default;
};

struct ExpertRecord {
  std::int32_t round = 0, layer = 0, expert = 0, owner = 0;
  double routed_share = 0;        // of the round's routed slots in this layer, over all nodes
  double update_norm = 0;         // ‖after − before‖₂
  double nearest_similarity = 0;  // highest cosine of w1 to another expert; NaN where there is none
  std::int32_t nearest = -1;
  double merged_similarity = 0;  // the highest after merging; the same where none took place
  std::int32_t staleness = 0;    // rounds since the expert's trainers last delivered
  bool operator==(const ExpertRecord&) const = default;
};

// Routing of one layer in one round, over all nodes.
struct RoutingRecord {
  std::int32_t round = 0, layer = 0;
  double entropy = 0;             // of the routed shares, nats
  double imbalance = 0;           // largest share × number of experts; 1 is perfect
  double mean_token_entropy = 0;  // mean over tokens of the router distribution's entropy, nats
  bool operator==(const RoutingRecord&) const = default;
};

struct EvalRecord {
  std::int32_t round = 0;  // 0: before training
  std::int64_t step = 0;
  double virtual_s = 0;
  std::string domain = {};
  std::int64_t tokens = 0;
  double ce = 0, perplexity = 0;
  std::int64_t bytes_so_far = 0;  // up and down, all nodes
  bool operator==(const EvalRecord&) const = default;
};

struct MemoryRecord {
  std::int32_t node = 0;  // −1: the coordinator, −2: this process
  std::string kind = {};
  std::int64_t predicted_bytes = 0, measured_bytes = 0;  // −1 where not known
  bool operator==(const MemoryRecord&) const = default;
};

struct EventRecord {
  double virtual_s = 0;
  std::int32_t node = 0;  // −1: the coordinator
  std::string kind = {};  // join, reject, missing, lost, merge, fault/crash, down, up, …
  std::string detail = {};
  bool operator==(const EventRecord&) const = default;
};

// What the root of the log says about the whole run.
struct RunInfo {
  std::string scenario = {};  // resolved, YAML text
  std::string scenario_hash = {};
  std::uint64_t seed = 0;
  // What time, bytes and memory are charged as; empty: as the model itself.
  std::string charged = {};
};

enum class RunStatus { kRunning, kComplete, kInterrupted, kFailed };
std::string Name(RunStatus status);

}  // namespace spes::analysis
