#include "sim/ns3/links.h"

#include <algorithm>

namespace spes::sim {

Links::Links(const Topology& topology, const TcpConfig& tcp, const Link::Arrived& arrived)
    : hosts_(static_cast<int>(topology.hosts.size())) {
  const int sites = static_cast<int>(topology.sites.size());
  const auto path_index = [&](int a, int b) {
    return topology.hosts[a].site * sites + topology.hosts[b].site;
  };
  for (int h = 0; h < hosts_; ++h) {
    const AccessLink& link = topology.hosts[h].link;
    Add(link.up_bps, link.rtt / 2, link.loss, link.queue_bdp, topology.LongestRtt(h), tcp, arrived);
  }
  for (int h = 0; h < hosts_; ++h) {
    const AccessLink& link = topology.hosts[h].link;
    Add(link.down_bps, link.rtt - link.rtt / 2, link.loss, link.queue_bdp, topology.LongestRtt(h),
        tcp, arrived);
  }
  std::vector<Time> longest(sites * sites, Time{0});
  for (int a = 0; a < hosts_; ++a) {
    for (int b = 0; b < hosts_; ++b) {
      if (a == b) continue;
      Time& rtt = longest[path_index(a, b)];
      rtt = std::max(rtt, topology.Rtt(a, b));
    }
  }
  for (int s = 0; s < sites; ++s) {
    for (int t = 0; t < sites; ++t) {
      const SitePath& path = topology.paths[s][t];
      Add(path.bps, path.rtt / 2, path.loss, path.queue_bdp, longest[s * sites + t], tcp, arrived);
    }
  }
  for (int a = 0; a < hosts_; ++a) {
    for (int b = 0; b < hosts_; ++b) {
      paths_.push_back(
          {links_[a].get(), links_[2 * hosts_ + path_index(a, b)].get(), links_[hosts_ + b].get()});
    }
  }
}

void Links::Add(double bps, Time delay, double loss, double queue_bdp, Time longest_rtt,
                const TcpConfig& tcp, const Link::Arrived& arrived) {
  const int packet = WireBytes(tcp.segment_bytes);
  const double queue =
      std::max(queue_bdp * bps / 8 * ToSeconds(longest_rtt), 2.0 * tcp.initial_window * packet);
  links_.push_back(std::make_unique<Link>(LinkConfig{.bps = bps,
                                                     .delay = delay,
                                                     .loss = loss,
                                                     .queue_bytes = queue,
                                                     .largest_packet = packet,
                                                     .seed = tcp.seed,
                                                     .stream = links_.size()},
                                          arrived));
}

}  // namespace spes::sim
