// Rows whose every value follows from one number, so that a reader can tell each of them from all
// others.
#pragma once

#include <string>

#include "analysis/hdf5/log_reader.h"
#include "analysis/recorder.h"

namespace spes::analysis {

inline StepRecord SampleStep(int i) {
  const double x = i;
  return {.node = i % 16,
          .step = i + 1,
          .round = i / 16 + 1,
          .virtual_s = x + 0.1,
          .wall_s = x + 0.2,
          .tokens = 1000000007LL * i,
          .ce = x + 0.3,
          .z = x + 0.4,
          .lb = x + 0.5,
          .rz = x + 0.6,
          .grad_norm = x + 0.7,
          .lr = x + 0.8};
}

inline RoundRecord SampleRound(int i) {
  const double x = i;
  return {.round = i + 1,
          .first_step = i + 2,
          .last_step = i + 3,
          .start_s = x + 0.1,
          .end_s = x + 0.2,
          .members = i + 4,
          .arrived = i + 5,
          .late = i + 6,
          .rejected = i + 7,
          .up_bytes = 3000000000LL * i,
          .down_bytes = 5000000000LL * i,
          .alpha = x + 0.3,
          .mean_ce = x + 0.4,
          .update_norm = x + 0.5};
}

inline NodeRoundRecord SampleNodeRound(int i) {
  const double x = i;
  return {.round = i + 1,
          .node = i + 2,
          .start_s = x + 0.1,
          .compute_s = x + 0.2,
          .up_s = x + 0.3,
          .wait_s = x + 0.4,
          .down_s = x + 0.5,
          .up_bytes = i + 3,
          .down_bytes = i + 4,
          .arrived = i + 5,
          .late = i + 6};
}

inline FlowRecord SampleFlow(int i) {
  const double x = i;
  return {.flow = 0x8000000000000000ULL + static_cast<unsigned>(i),
          .from = i + 1,
          .to = -1,
          .message = "message " + std::to_string(i),
          .round = i + 2,
          .start_s = x + 0.1,
          .end_s = x + 0.2,
          .bytes = i + 3,
          .wire_bytes = i + 4,
          .retransmitted_bytes = i + 5,
          .retransmissions = i + 6,
          .drops = i + 7,
          .rtt_min_s = x + 0.3,
          .rtt_mean_s = x + 0.4,
          .goodput_bps = x + 0.5,
          .outcome = "outcome " + std::to_string(i)};
}

inline LinkRecord SampleLink(int i) {
  const double x = i;
  return {.start_s = x + 0.1,
          .end_s = x + 0.2,
          .link = i + 1,
          .name = "ohio → tokyo " + std::to_string(i),
          .capacity_bytes = 5000000000LL * i,
          .wire_bytes = 4000000000LL * i,
          .utilisation = x + 0.3,
          .dropped_packets = i + 2};
}

inline ExpertRecord SampleExpert(int i) {
  const double x = i;
  return {.round = i + 1,
          .layer = i + 2,
          .expert = i + 3,
          .owner = i + 4,
          .routed_share = x + 0.1,
          .update_norm = x + 0.2,
          .nearest_similarity = x + 0.3,
          .nearest = i + 5,
          .staleness = i + 6};
}

inline RoutingRecord SampleRouting(int i) {
  const double x = i;
  return {.round = i + 1,
          .layer = i + 2,
          .entropy = x + 0.1,
          .imbalance = x + 0.2,
          .mean_token_entropy = x + 0.3};
}

inline EvalRecord SampleEval(int i) {
  const double x = i;
  return {.round = i + 1,
          .step = i + 2,
          .virtual_s = x + 0.1,
          .domain = "domain " + std::to_string(i),
          .tokens = i + 3,
          .ce = x + 0.2,
          .perplexity = x + 0.3,
          .bytes_so_far = i + 4};
}

inline MemoryRecord SampleMemory(int i) {
  return {.node = i - 2,
          .kind = "kind " + std::to_string(i),
          .predicted_bytes = i + 1,
          .measured_bytes = i + 2};
}

inline EventRecord SampleEvent(int i) {
  return {.virtual_s = i + 0.1,
          .node = i - 1,
          .kind = "kind " + std::to_string(i),
          .detail = "Größe ‖x‖ of node " + std::to_string(i)};
}

inline constexpr int kStepsPerRound = 16;

// The i-th round of a run: kStepsPerRound steps, and one row of every other table.
inline void RecordSampleRound(int i, Recorder* recorder) {
  for (int k = 0; k < kStepsPerRound; ++k) recorder->Record(SampleStep(i * kStepsPerRound + k));
  recorder->Record(SampleNodeRound(i));
  recorder->Record(SampleFlow(i));
  recorder->Record(SampleLink(i));
  recorder->Record(SampleExpert(i));
  recorder->Record(SampleRouting(i));
  recorder->Record(SampleEval(i));
  recorder->Record(SampleMemory(i));
  recorder->Record(SampleEvent(i));
  recorder->Record(SampleRound(i));
}

// How many rounds of RecordSampleRound a log holds, or −1 where any row of any table is not the one
// that was written there or is missing in one of the first `rounds` rounds.
inline int WholeRounds(const RunLog& log, int rounds) {
  const auto count = [&](const auto& rows, auto sample, int per_round) {
    for (int i = 0; i < static_cast<int>(rows.size()); ++i) {
      if (!(rows[i] == sample(i))) return -1;
    }
    const int whole = static_cast<int>(rows.size()) / per_round;
    return whole < rounds ? -1 : whole;
  };
  int least = count(log.rounds, SampleRound, 1);
  for (const int other :
       {count(log.steps, SampleStep, kStepsPerRound), count(log.node_rounds, SampleNodeRound, 1),
        count(log.flows, SampleFlow, 1), count(log.links, SampleLink, 1),
        count(log.experts, SampleExpert, 1), count(log.routing, SampleRouting, 1),
        count(log.evals, SampleEval, 1), count(log.memory, SampleMemory, 1),
        count(log.events, SampleEvent, 1)}) {
    least = std::min(least, other);
  }
  return least;
}

}  // namespace spes::analysis
