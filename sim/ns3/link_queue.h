// One direction of a link at the packet level: a transmitter with a queue in front, and a wire.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/link_graph.h"

namespace spes::sim {

// First in, first out, drop-tail in bytes; packets lost on the wire have taken their time on it.
// When a packet is queued its departure is already certain, so it costs one event, its arrival.
// Control packets go before all bulk packets: they wait at most for the one being sent. What is
// already queued is not moved, but the time they take is taken from the bulk packets that follow;
// from nobody while what is queued stands still.
class LinkQueue {
 public:
  // `link` must outlive it. `largest_packet`: wire bytes of
  // what a control packet may have to wait for. `seed`: of the losses, different for each
  // link, so that traffic elsewhere does not change what is lost here.
  LinkQueue(const Link& link, int largest_packet, std::uint64_t seed);

  // Takes a packet at `now` (ns, never decreasing) and says when it arrives at the other end;
  // nothing when it is lost: the queue is full, the link is down for good, or it will not survive
  // the wire. A packet may stand for several: then it is so many times as likely to be lost, or to
  // begin or end a burst of losses. When the wire loses it, it counts as one dropped packet, or as
  // a burst at most, so that as many count as of packets of real size; when the queue loses it, as
  // those it stands for.
  std::optional<std::int64_t> Send(std::int64_t now, int wire_bytes, bool control, int stands_for);

  // What is in the queue at `now` is there at `now + delta` in its place; `delta` may be negative
  // to take an earlier shift back. Control packets do not stand still.
  void Shift(std::int64_t now, std::int64_t delta);

  // Bytes have passed and packets were lost that were never handed to Send.
  void CountUnseen(std::int64_t wire_bytes, std::int64_t dropped_packets) {
    wire_bytes_ += wire_bytes;
    dropped_packets_ += dropped_packets;
  }

  const Link& link() const { return link_; }
  // Sent by `now` (ns, not before the last call of Send), without what waits in the queue.
  std::int64_t WireBytesBy(std::int64_t now) const;
  std::int64_t dropped_packets() const { return dropped_packets_; }
  // Those of them that the queue had no room for.
  std::int64_t overflowed_packets() const { return overflowed_packets_; }

 private:
  // Whether a packet is dropped, and counted, because so many bytes wait.
  bool Overflows(double waiting, int stands_for);
  bool Lost(int stands_for);
  double Uniform();

  const Link& link_;
  const double largest_packet_;
  // Places in the sequence of all bytes that the link can carry from time 0 on (RateCurve::BytesBy)
  // until which it is taken: a double holds them to a byte for 9 petabytes.
  double taken_ = 0;
  double control_taken_ = 0;  // the same for control packets
  // While it is put off, until when, and what waits.
  std::int64_t put_off_until_ = 0;
  double put_off_ = 0;
  std::uint64_t random_;
  bool in_burst_ = false;
  std::int64_t wire_bytes_ = 0;
  std::int64_t dropped_packets_ = 0;
  std::int64_t overflowed_packets_ = 0;
};

// The queues that a packet crosses, in order.
using Path = std::vector<LinkQueue*>;

}  // namespace spes::sim
