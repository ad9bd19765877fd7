// Hosts, their access links, and the paths between the sites they stand at.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/units.h"

namespace spes::sim {

// A host's link to its site, the two directions separately.
struct AccessLink {
  double down_bps = 1e9;  // towards the host, bit/s
  double up_bps = 1e9;    // from the host
  Time rtt{0};            // round trip over this link alone: half of it in each direction
  double loss = 0;        // probability that a packet is lost, each direction
  double queue_bdp =
      1;  // buffer in front of each direction, in rate × longest round trip through it
};

struct Host {
  std::string name;
  int site = 0;  // index of Topology::sites
  AccessLink link;
};

// The path between two sites, or between two hosts of one site (the diagonal). Shared by all its
// traffic.
struct SitePath {
  Time rtt{0};         // round trip; half of it in each direction
  double bps = 100e9;  // each direction, bit/s
  double loss = 0;
  double queue_bdp = 1;
};

struct Topology {
  std::vector<Host> hosts;
  std::vector<std::string> sites;
  std::vector<std::vector<SitePath>> paths;  // [site][site], symmetric

  // Round trip between two different hosts when all queues are empty: both access links and the
  // path.
  Time Rtt(int a, int b) const;
  // The smallest link rate from `a` to `b`, bit/s.
  double BottleneckBps(int a, int b) const;
  // The longest round trip of any pair of hosts that uses host `a`'s access link; 0 for a lone
  // host.
  Time LongestRtt(int a) const;
  // Loss of a packet on its way from `a` to `b`: 1 − Π(1 − loss of each link).
  double PathLoss(int a, int b) const;

  // Throws std::invalid_argument with one line that names what is wrong: no hosts, a site out of
  // range, a matrix that is not square or symmetric, a rate that is not positive, a negative RTT, a
  // loss outside [0,1), a queue that is not positive.
  void Validate() const;
};

// How transport connections behave, at every level that models them.
struct TcpConfig {
  std::string congestion = "cubic";  // cubic | reno
  int segment_bytes = 1448;          // MSS
  int initial_window = 10;           // segments
  int streams = 1;                   // parallel connections per bulk transfer
  Time stall_timeout = std::chrono::minutes(5);
  std::uint64_t seed = 1;  // of random losses

  // Throws std::invalid_argument with one line: an unknown congestion control, a segment outside
  // [536, 65000] bytes, a window outside [1, 1000] segments, a number of streams below 1, a
  // time-out that is not positive.
  void Validate() const;
};

}  // namespace spes::sim
