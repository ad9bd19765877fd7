// The links of a topology and the paths over them.
#pragma once

#include <memory>
#include <vector>

#include "sim/ns3/link.h"
#include "sim/topology.h"

namespace spes::sim {

// What a segment with this much payload takes on the wire: TCP header with timestamps, IPv4, PPP.
constexpr int WireBytes(int payload) { return payload + 54; }

class Links {
 public:
  // Up link and down link of each host, and a link for each ordered pair of sites, a site with
  // itself included. Half of a round trip is spent in each direction. A queue holds queue_bdp times
  // rate × the longest round trip that uses the link, and never less than two initial windows, so
  // that no flow's first burst is cut, however short the round trip.
  Links(const Topology& topology, const TcpConfig& tcp, const Link::Arrived& arrived);

  // From host `a` to host `b`.
  const Path* Between(int a, int b) const { return &paths_[a * hosts_ + b]; }

 private:
  void Add(double bps, Time delay, double loss, double queue_bdp, Time longest_rtt,
           const TcpConfig& tcp, const Link::Arrived& arrived);

  int hosts_;
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<Path> paths_;
};

}  // namespace spes::sim
