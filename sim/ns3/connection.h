// One TCP connection that carries payload from its sender to its receiver.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "sim/ns3/link.h"
#include "sim/ns3/sequence_tracker.h"
#include "sim/ns3/tcp_stack.h"
#include "sim/units.h"

namespace spes::sim {

// What one connection has done so far; the fields mean what they mean in FlowResult.
struct ConnectionCounts {
  std::int64_t delivered_bytes = 0;
  std::int64_t wire_bytes = 0;
  std::int64_t retransmitted_bytes = 0;
  std::int64_t retransmissions = 0;
  std::int64_t dropped_packets = 0;
  std::int64_t rtt_samples = 0;
  Time rtt_min{kNever};
  Time rtt_sum{0};
};

struct ConnectionPlan {
  std::uint32_t id = 0;
  TcpSettings tcp;
  const Path* there = nullptr;  // sender to receiver
  const Path* back = nullptr;
  Time rtt{0};
  bool control = false;
  bool known = true;  // the handshake lies in the past; otherwise it crosses the network
  std::int64_t bytes = 0;
};

// Owned by its flow and by its segments on the way. The callbacks run within ns-3 events and must
// not end the connection there.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  struct Events {
    std::function<void()> progress;  // payload has reached the receiver
    std::function<void()> failed;    // TCP gave up
  };

  Connection(const ConnectionPlan& plan, Events events) : plan_(plan), events_(std::move(events)) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Connects, then sends the payload.
  void Open(TcpStack& stack);

  // Ends without a word. Segments on the way still take their time on the links.
  void Close();

  // A segment that TCP hands down at one of the two ends.
  void Send(const ns3::Ptr<ns3::Packet>& packet, bool from_sender);

  // A segment that has crossed its path.
  void Deliver(Segment&& segment);

  // A segment of this connection was lost.
  void CountDrop(const Segment& segment);

  const ConnectionCounts& counts() const { return counts_; }

 private:
  void Fill();
  void Drain();
  void TakeSample(std::uint32_t acknowledged);

  const ConnectionPlan plan_;
  const Events events_;
  ns3::Ptr<TcpSocket> sender_, listener_, receiver_;
  bool established_ = false;  // at the receiver
  std::int64_t unsent_ = 0;   // payload that TCP has not taken yet
  ConnectionCounts counts_;
  SequenceTracker sequence_;
  std::optional<std::uint32_t> timed_;  // the acknowledgement that ends the running RTT sample
  std::int64_t timed_since_ = 0;        // ns
};

}  // namespace spes::sim
