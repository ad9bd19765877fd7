// Hosts, the sites they stand at, and the lines between them: what a user describes. What a packet
// crosses, in order, follows from it in link_graph.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/conditions.h"
#include "sim/units.h"

namespace spes::sim {

// A host's link to its site, or a site's to the rest of the world: the two directions separately.
// Translation of addresses (NAT) has no place here: it changes who may connect, not what passes.
struct AccessLink {
  double down_bps = 1e9;  // towards the host or site, bit/s
  double up_bps = 1e9;    // from it
  Time rtt{0};            // round trip over this link alone: half of it in each direction
  double loss = 0;        // probability that a packet is lost, each direction
  double loss_burst = 1;  // packets that are lost in a row, on average; 1: each by itself
  double queue_bdp =
      1;  // buffer in front of each direction, in rate × longest round trip through it
  // In place of the constant rates where not null.
  std::shared_ptr<const RateTrace> down_trace = {}, up_trace = {};
  Conditions conditions = {};
};

struct Host {
  std::string name;
  int site = 0;  // index of Topology::sites
  AccessLink link;
};

// The direct line from one site to another, or between the hosts of one site (the diagonal). Shared
// by all its traffic.
struct SitePath {
  Time rtt{0};         // round trip; half of it in each direction
  double bps = 100e9;  // from the first site to the second, bit/s
  double loss = 0;
  double loss_burst = 1;
  double queue_bdp = 1;
  std::shared_ptr<const RateTrace> trace = {};  // in place of bps where not null
  Conditions conditions = {};
};

// direct: traffic between two sites takes the line between them, which every pair of sites with
// hosts must have. shortest: it takes the lines with the smallest sum of round trips (the fewest
// lines among equals), so that lines may be absent and sites without hosts be mere junctions.
enum class Routing { kDirect, kShortest };

struct Topology {
  std::vector<Host> hosts;
  std::vector<std::string> sites;
  // [site] the link that all hosts of a site share on their way to other sites; empty: none has
  // one.
  std::vector<std::optional<AccessLink>> uplinks = {};
  // [site][site]; round trips are symmetric, rates need not be.
  std::vector<std::vector<std::optional<SitePath>>> paths;
  Routing routing = Routing::kDirect;

  // Throws std::invalid_argument with one line that names what is wrong: no hosts, a site out of
  // range, a matrix that is not square, a line whose way back is absent or has another round trip,
  // a rate below 1 bit/s, a negative RTT, a loss outside [0,1), a burst below 1, a queue
  // that is not positive, bad conditions or traces.
  void Validate() const;
};

// How transport connections behave, at every level that models them.
struct TcpConfig {
  std::string congestion = "cubic";  // cubic | reno
  int segment_bytes = 1448;          // MSS
  int initial_window = 10;           // segments
  int streams = 1;                   // parallel connections per bulk transfer
  // What a bulk transfer makes of those that its connections carried before: "fresh", nothing, or
  // "remembered", as AfterIdle in path_memory.h. The ideal level has nothing to remember.
  std::string after_idle = "remembered";
  // The coarse level's segments are up to so many times larger.
  int coarse_factor = 5;
  Time stall_timeout = std::chrono::minutes(5);
  std::uint64_t seed = 1;  // of random losses and of conditions

  // Throws std::invalid_argument with one line: an unknown congestion control or after_idle, a
  // segment outside [536, 65000] bytes, a window outside [1, 1000] segments, a number of streams
  // below 1, a factor outside [1, 100], a time-out that is not positive.
  void Validate() const;
};

}  // namespace spes::sim
