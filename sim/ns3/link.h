// One direction of a link: a transmitter with a queue in front, and a wire.
#pragma once

#include <ns3/packet.h>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "sim/units.h"

namespace spes::sim {

class Connection;
class Link;

// The links between two hosts, in order: up, between the sites, down.
using Path = std::array<Link*, 3>;

// A TCP segment on its way.
struct Segment {
  ns3::Ptr<ns3::Packet> packet;  // TCP header and payload
  std::shared_ptr<Connection> connection;
  const Path* path = nullptr;
  int hop = 0;         // index in `path` of the link it is on
  int wire_bytes = 0;  // with all headers
  bool to_receiver = false;
  bool control = false;
};

struct LinkConfig {
  double bps = 0;
  Time delay{0};             // of the wire, one way
  double loss = 0;           // probability for each packet
  double queue_bytes = 0;    // waiting bytes beyond which a new packet is dropped
  int largest_packet = 0;    // wire bytes
  std::uint64_t seed = 0;    // of the losses in the whole network
  std::uint64_t stream = 0;  // different for each link
};

// First in, first out, drop-tail in bytes; lost packets have taken their time on the wire.
// When a packet is queued its departure is already certain, so it costs one event, its arrival.
// Control segments go before all bulk segments: they wait at most for the one being sent. What is
// already queued is not moved, but the time they take is taken from the bulk segments that follow.
// Runs within ns-3's simulator.
class Link {
 public:
  using Arrived = std::function<void(Segment&&)>;

  Link(const LinkConfig& config, Arrived arrived);

  const LinkConfig& config() const { return config_; }

  // False when the segment was lost: the queue is full, or it will not survive the wire. It is then
  // left to the caller.
  bool Send(Segment&& segment);

 private:
  struct Flying {
    std::int64_t at;  // ns, of its arrival
    Segment segment;
  };
  // In the order of arrival; the event for the first is scheduled.
  using Lane = std::deque<Flying>;

  bool Lost();
  void Fly(Lane& lane, std::int64_t at, Segment&& segment);
  void Land(Lane* lane);

  const LinkConfig config_;
  const Arrived arrived_;
  const double ns_per_byte_;
  double free_ = 0;          // ns, when all that is queued will have been sent
  double control_free_ = 0;  // ns, the same for control segments
  std::uint64_t random_;
  Lane bulk_, control_;
};

}  // namespace spes::sim
