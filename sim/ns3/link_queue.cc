#include "sim/ns3/link_queue.h"

#include <algorithm>
#include <cmath>

#include "sim/seeds.h"

namespace spes::sim {
namespace {

// How far beyond its size, in packets, a full queue may still take one.
constexpr double kRandomPackets = 2;

}  // namespace

LinkQueue::LinkQueue(const Link& link, int largest_packet, std::uint64_t seed)
    : link_(link), largest_packet_(largest_packet), random_(Mix(seed)) {}

std::optional<std::int64_t> LinkQueue::Send(std::int64_t now, int wire_bytes, bool control,
                                            int stands_for) {
  const double here = link_.rate.BytesBy(static_cast<double>(now));
  const double backlog = std::max(0.0, taken_ - here);
  double end;
  if (control) {
    const bool still = now < put_off_until_;
    const double ahead = std::min(still ? put_off_ : backlog, largest_packet_);
    const double start = std::max(here + ahead, control_taken_);
    if (Overflows(start - here, stands_for)) return std::nullopt;
    end = control_taken_ = start + wire_bytes;
    if (!still) taken_ = here + backlog + wire_bytes;
  } else {
    if (Overflows(backlog, stands_for)) return std::nullopt;
    end = taken_ = here + backlog + wire_bytes;
  }
  wire_bytes_ += wire_bytes;
  const double sent = link_.rate.When(end);
  if (!std::isfinite(sent)) return dropped_packets_ += stands_for, std::nullopt;
  if (Lost(stands_for)) {
    dropped_packets_ += std::min<std::int64_t>(stands_for, std::llround(link_.loss_burst));
    return std::nullopt;
  }
  const std::int64_t at = std::llround(sent);
  return at + link_.DelayAt(Time(at)).count();
}

// A queue that is only just full takes some packets and not others, by chance. Without that, a
// sender whose packets are clocked by the queue's own departures takes every place that becomes
// free, and others starve for minutes (phase effects: S. Floyd, V. Jacobson, On Traffic Phase
// Effects in Packet-Switched Gateways, 1992), which jitter in real hosts prevents.
bool LinkQueue::Overflows(double waiting, int stands_for) {
  if (waiting <= link_.queue_bytes ||
      waiting <= link_.queue_bytes + kRandomPackets * largest_packet_ * Uniform()) {
    return false;
  }
  dropped_packets_ += stands_for;
  overflowed_packets_ += stands_for;
  return true;
}

void LinkQueue::Shift(std::int64_t now, std::int64_t delta) {
  const double from = link_.rate.BytesBy(static_cast<double>(now));
  const double to = link_.rate.BytesBy(static_cast<double>(now + delta));
  put_off_until_ = now + delta;
  put_off_ = std::max(0.0, taken_ - from);
  taken_ = to + put_off_;
}

std::int64_t LinkQueue::WireBytesBy(std::int64_t now) const {
  const double waiting =
      now < put_off_until_ ? put_off_ : taken_ - link_.rate.BytesBy(static_cast<double>(now));
  return wire_bytes_ - std::llround(std::max(0.0, waiting));
}

// Losses come one by one, or, with bursts, by the chain of E. N. Gilbert (Bell System Technical
// Journal 39, 1960): all packets of a burst are lost, its length is geometric with the mean asked
// for, and the time between bursts makes the mean loss right.
bool LinkQueue::Lost(int stands_for) {
  if (link_.loss == 0) return false;
  if (link_.loss_burst == 1) return Uniform() < std::min(1.0, link_.loss * stands_for);
  if (in_burst_) {
    in_burst_ = Uniform() >= std::min(1.0, stands_for / link_.loss_burst);
  } else {
    const double begins = link_.loss / ((1 - link_.loss) * link_.loss_burst);
    in_burst_ = Uniform() < std::min(1.0, begins * stands_for);
  }
  return in_burst_;
}

double LinkQueue::Uniform() {
  random_ += kSplitMixStep;
  return static_cast<double>(Mix(random_) >> 11) * 0x1p-53;
}

}  // namespace spes::sim
