#include "sim/ns3/frame_network.h"

#include <utility>

#include "sim/seeds.h"

namespace spes::sim {

FrameNetwork::FrameNetwork(const Topology& topology, const TcpConfig& tcp, Clock clock)
    : graph_(topology, tcp), clock_(std::move(clock)), lanes_(graph_.links().size()) {
  for (std::size_t i = 0; i < graph_.links().size(); ++i) {
    queues_.emplace_back(graph_.links()[i], WireBytes(tcp.segment_bytes), LinkSeed(tcp.seed, i));
  }
}

void FrameNetwork::Send(int from, int to, int ip_bytes, std::function<void()> arrived) {
  Hop({Time{0}, &graph_.Route(from, to), 0, WireBytesOf(ip_bytes), std::move(arrived)});
}

void FrameNetwork::Hop(Flying&& flying) {
  const int link = (*flying.route)[flying.hop];
  const auto at = queues_[link].Send(clock_.now().count(), flying.wire_bytes, false, 1);
  if (!at) return;
  Lane& lane = lanes_[link];
  flying.at = Time(*at);
  lane.push_back(std::move(flying));
  if (lane.size() == 1) Expect(link);
}

void FrameNetwork::Expect(int link) {
  clock_.after(lanes_[link].front().at - clock_.now(), [this, link] { Land(link); });
}

// In the order in which they set out: none overtakes another where the link becomes shorter.
void FrameNetwork::Land(int link) {
  Lane& lane = lanes_[link];
  while (!lane.empty() && lane.front().at <= clock_.now()) {
    Flying flying = std::move(lane.front());
    lane.pop_front();
    if (++flying.hop < flying.route->size()) {
      Hop(std::move(flying));
    } else {
      flying.arrived();
    }
  }
  if (!lane.empty()) Expect(link);
}

}  // namespace spes::sim
