// The links of a topology, one entry for each direction, and the routes over them: what all levels
// of fidelity run on.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/rate_curve.h"
#include "sim/topology.h"
#include "sim/units.h"

namespace spes::sim {

// What a segment with this much payload takes on the wire: TCP header with timestamps, IPv4, PPP.
constexpr int kHeaderBytes = 54;
constexpr int WireBytes(int payload) { return payload + kHeaderBytes; }

struct Link {
  std::string name;  // "node 3 up", "ohio → tokyo", "within ohio"
  double bps = 0;    // nominal: without trace and conditions; the trace's mean where there is one
  RateCurve rate;
  Time delay{0};                        // one way, without rtt_steps
  std::vector<RttStep> rtt_steps = {};  // of the round trip: half of `extra` counts here
  double loss = 0;
  double loss_burst = 1;
  double queue_bytes = 0;  // waiting bytes beyond which a new packet is dropped
  Time longest_rtt{0};     // of any pair of hosts whose traffic crosses it, when it is idle

  Time DelayAt(Time t) const;
  // The longest delay at `t` or later.
  Time LongestDelayFrom(Time t) const;
  // The first change of the delay after `t`; kNever when there is none.
  Time NextDelayChange(Time t) const;
};

class LinkGraph {
 public:
  // Throws std::invalid_argument as Topology::Validate and TcpConfig::Validate do, and when two
  // sites with hosts cannot reach each other. A queue holds
  // queue_bdp × rate × the longest round trip that uses the link, and never less than two initial
  // windows, so that no flow's first burst is cut, however short the round trip.
  LinkGraph(const Topology& topology, const TcpConfig& tcp);

  int hosts() const { return static_cast<int>(host_site_.size()); }
  const std::vector<Link>& links() const { return links_; }

  // The links from host `a` to another host `b`, in order: indices of links(). Valid as long as the
  // graph.
  const std::vector<int>& Route(int a, int b) const;

  // From one host to another when all queues are empty, for what sets out at `t`; and there and
  // back.
  Time OneWay(int a, int b, Time t = Time{0}) const;
  Time Rtt(int a, int b, Time t = Time{0}) const { return OneWay(a, b, t) + OneWay(b, a, t); }
  // No round trip that begins at `t` or later is longer while all queues are empty.
  Time LongestRttFrom(int a, int b, Time t) const;
  // The smallest nominal link rate from `a` to `b`, bit/s.
  double BottleneckBps(int a, int b) const;
  // Mean loss of a packet on its way from `a` to `b`: 1 − Π(1 − loss of each link).
  double PathLoss(int a, int b) const;

 private:
  // The route without the two access links, between (or within) sites.
  using SiteRoute = std::vector<int>;

  void FindRoutes(const Topology& topology);
  void SizeQueues(const TcpConfig& tcp);

  std::vector<Link> links_;  // up links of the hosts, down links of the hosts, then the others
  std::vector<double> queue_bdp_;                   // [link], until the queues are sized
  std::vector<int> host_site_;                      // [host]
  std::vector<std::vector<SiteRoute>> site_route_;  // [site][site]
  mutable std::map<std::pair<int, int>, std::vector<int>> routes_;  // those asked for so far
};

}  // namespace spes::sim
