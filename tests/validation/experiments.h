// The experiments that hold the network levels against laws and against each other. The validation
// program runs them at full size, the tests a share of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/network.h"
#include "tests/sim/levels.h"

namespace spes::validation {

// Of the levels of this build. Throws std::invalid_argument for a name that is none of them.
const sim::Level& LevelNamed(const std::string& name);

struct SingleFlow {
  double mbps = 0;
  double rtt_ms = 0;
  std::int64_t bytes = 0;
  int streams = 1;
  double loss = 0;
  sim::TcpConfig tcp = {};
};

struct Run {
  double virtual_s = 0;
  double cpu_s = 0;
  sim::FlowResult result = {};  // of a single flow
};

// One transfer between two hosts, each of whose links has the rate, half of the round trip and half
// of the loss.
Run RunSingleFlow(const sim::Level& level, const SingleFlow& flow);

// Seconds that a lossless transfer takes on an open connection: half a round trip, the wire time of
// the bytes, and what slow start leaves idle, round by round:
//   T = RTT/2 + t + S/C_eff + Σ_i max(0, RTT + 3t − 2^i · IW · MSS/C_eff), i = 0, 1, …
// while bytes are left, with C_eff = C · MSS/(MSS + 54) and t = MSS/C_eff, the time of one segment
// on one of the two links: a segment crosses both, and its acknowledgement waits for the next
// segment. Where S outlasts slow start and t is small, the sum is what RTT · log2(BDP/(IW·MSS))
// smooths over in the usual form, SmoothLaw.
double LosslessLaw(const SingleFlow& flow);

// The usual form: S/C_eff + RTT · (log2(BDP/(IW·MSS)) − 0.5); for transfers that outlast slow
// start.
double SmoothLaw(const SingleFlow& flow);

// Steady Mbps under random loss: Mathis for Reno; the larger of that and CUBIC's own window at
// losses whose distances are random.
double LossLaw(const SingleFlow& flow);

// Sixteen flows between unequal hosts and one at 1 Gbps: access links of 20 to 500 Mbps, one in
// each sixteenth of that range by its logarithm, round trips of 20 to 150 ms, starts within half a
// second, all drawn from the seed.
struct FanRun {
  double makespan_s = 0, median_s = 0, p90_s = 0;
  double cpu_s = 0;
};
FanRun RunFan(const sim::Level& level, bool fan_in, std::int64_t bytes, std::uint64_t seed);

// A round of SPES through a coordinator at 17 Gbps: sixteen nodes on the links of the scenario
// 16node_internet, each sending 1.9 GB and then receiving 8 GB, times `scale`.
Run RunSpesRound(const sim::Level& level, double scale);

// `rounds` rounds of `nodes` nodes in sixteen groups of unequal links and one coordinator whose
// link is full: jittered uploads of 10 MB, then downloads of 40 MB for all.
Run RunManyNodes(const sim::Level& level, int nodes, int rounds);

}  // namespace spes::validation
