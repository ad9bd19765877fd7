// Ethernet frames over the links of a topology, hop by hop.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "sim/link_graph.h"
#include "sim/ns3/link_queue.h"
#include "sim/units.h"

namespace spes::sim {

// The links are the packet level's: rates and delays over time, drop-tail queues, losses. A frame
// counts on them as a segment of that level does, with its IP packet and the two bytes of PPP in
// place of the Ethernet header. All traffic is bulk. Whose time it is that passes is the caller's
// affair.
class FrameNetwork {
 public:
  struct Clock {
    std::function<Time()> now;
    std::function<void(Time delay, std::function<void()> event)> after;
  };

  // Throws std::invalid_argument as LinkGraph does.
  FrameNetwork(const Topology& topology, const TcpConfig& tcp, Clock clock);
  FrameNetwork(const FrameNetwork&) = delete;
  FrameNetwork& operator=(const FrameNetwork&) = delete;

  // Puts a frame with an IP packet of so many bytes on its way from one host to another, now.
  // `arrived` is called when it has crossed its last link, and never when it is dropped.
  void Send(int from, int to, int ip_bytes, std::function<void()> arrived);

  static constexpr int WireBytesOf(int ip_bytes) { return ip_bytes + kPppBytes; }

  const LinkGraph& graph() const { return graph_; }
  const std::deque<LinkQueue>& queues() const { return queues_; }  // [link of graph()]

 private:
  static constexpr int kPppBytes = 2;

  struct Flying {
    Time at;                        // when it arrives at the end of the link
    const std::vector<int>* route;  // links
    std::size_t hop;                // place of the link in the route
    int wire_bytes;
    std::function<void()> arrived;
  };
  // The frames on a link, in the order in which they set out; the event for the first is scheduled.
  using Lane = std::deque<Flying>;

  void Hop(Flying&& flying);
  void Expect(int link);
  void Land(int link);

  const LinkGraph graph_;
  const Clock clock_;
  std::deque<LinkQueue> queues_;
  std::vector<Lane> lanes_;  // [link]
};

}  // namespace spes::sim
