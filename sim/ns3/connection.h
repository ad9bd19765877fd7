// One TCP connection that carries payload from its sender to its receiver.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "sim/ns3/link_queue.h"
#include "sim/ns3/sequence_tracker.h"
#include "sim/ns3/step_simulator.h"
#include "sim/ns3/tcp_stack.h"
#include "sim/units.h"

namespace spes::sim {

// What one connection has done so far; the fields mean what they mean in FlowResult.
struct ConnectionCounts {
  std::int64_t delivered_bytes = 0;
  std::int64_t sent_bytes = 0;  // payload, each byte once
  std::int64_t wire_bytes = 0;
  std::int64_t acknowledgement_bytes = 0;  // on the wire, the way back
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
  Path there;  // sender to receiver
  Path back;
  int timeline = 0;  // of the simulator
  Time rtt{0};
  bool control = false;
  bool known = true;  // the handshake lies in the past; otherwise it crosses the network
  std::optional<SocketMemory> memory;  // of an earlier transfer
  std::int64_t bytes = 0;
};

// Owned by its flow and by its segments on the way. Its TCP lives in its timeline, its segments on
// the links do so too. The callbacks run within ns-3 events and must
// not end the connection there.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  struct Events {
    std::function<void()> progress;  // payload has reached the receiver
    std::function<void()> failed;    // TCP gave up
  };

  // `simulator` must outlive it.
  Connection(StepSimulator& simulator, ConnectionPlan plan, Events events);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Connects, then sends the payload.
  void Open(TcpStack& stack);

  // Ends without a word. Segments on the way still take their time on the links.
  void Close();

  // A segment that TCP hands down at one of the two ends.
  void Send(const ns3::Ptr<ns3::Packet>& packet, bool from_sender);

  // When the last payload came to the receiver, ns of the timeline.
  std::int64_t delivered_at() const { return delivered_at_; }
  // The same in virtual time, and with what has passed unseen; 0 before.
  Time progress_at() const { return Time(progress_at_); }

  // See TcpSocket::MakeFine. No effect where segments are of real size already.
  void MakeFine();

  // Payload that TCP has not taken yet.
  std::int64_t unsent_bytes() const { return unsent_; }

  // Takes payload that passed unseen while the timeline was put off: off what is unsent, onto what
  // was delivered; the other counts went with it.
  void PassUnseen(const ConnectionCounts& passed);

  // Once it is open, until Close.
  SocketMemory Memory() const { return sender_->Memory(Now()); }

  const ConnectionCounts& counts() const { return counts_; }

 private:
  Time Now() const { return Time(static_cast<std::int64_t>(simulator_.NowTs())); }
  // A segment on a link, of one direction.
  struct Flying {
    std::int64_t at;               // when it arrives, ns of the timeline
    ns3::Ptr<ns3::Packet> packet;  // TCP header and payload
    int wire_bytes;
    int stands_for;  // segments of real size
  };
  // The segments on one link, in the order of arrival; the event for the first is scheduled.
  using Lane = std::deque<Flying>;
  struct Way {
    Path path;
    std::vector<Lane> lanes;  // [link of the path]
    bool to_receiver;
  };

  void Resume(const SocketMemory& memory);
  void Fill();
  void Drain();
  void TakeSample(std::uint32_t acknowledged);
  // Puts a segment on the link at place `hop` of its way.
  void Hop(Way& way, std::size_t hop, Flying&& segment);
  void Land(Way& way, std::size_t hop);
  // A segment that has crossed its path.
  void Deliver(const ns3::Ptr<ns3::Packet>& packet, bool to_receiver);

  StepSimulator& simulator_;
  const ConnectionPlan plan_;
  const Events events_;
  Way there_, back_;
  ns3::Ptr<TcpSocket> sender_, listener_, receiver_;
  int segment_bytes_;         // that the sender fills
  bool established_ = false;  // at the receiver
  std::int64_t unsent_ = 0;
  std::int64_t delivered_at_ = 0;  // ns of the timeline
  std::int64_t progress_at_ = 0;   // ns
  ConnectionCounts counts_;
  SequenceTracker sequence_;
  std::optional<std::uint32_t> timed_;  // the acknowledgement that ends the running RTT sample
  std::int64_t timed_since_ = 0;        // ns of the timeline
};

}  // namespace spes::sim
