#include "sim/ns3/link_queue.h"

#include <algorithm>
#include <cmath>

namespace spes::sim {
namespace {

// How far beyond its size, in packets, a full queue may still take one.
constexpr double kRandomPackets = 2;

// SplitMix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014): the value at this place of the sequence.
std::uint64_t Mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace

LinkQueue::LinkQueue(const Link& link, int largest_packet, std::uint64_t seed)
    : link_(link), largest_packet_(largest_packet), random_(Mix(seed)) {}

std::optional<std::int64_t> LinkQueue::Send(std::int64_t now, int wire_bytes, bool control,
                                            double loss_factor) {
  const double here = link_.rate.BytesBy(static_cast<double>(now));
  const double backlog = std::max(0.0, taken_ - here);
  double end;
  if (control) {
    const double start = std::max(here + std::min(backlog, largest_packet_), control_taken_);
    if (Overflows(start - here)) return ++dropped_packets_, std::nullopt;
    end = control_taken_ = start + wire_bytes;
    taken_ = here + backlog + wire_bytes;
  } else {
    if (Overflows(backlog)) return ++dropped_packets_, std::nullopt;
    end = taken_ = here + backlog + wire_bytes;
  }
  wire_bytes_ += wire_bytes;
  const double sent = link_.rate.When(end);
  if (!std::isfinite(sent) || Lost(loss_factor)) return ++dropped_packets_, std::nullopt;
  const std::int64_t at = std::llround(sent);
  return at + link_.DelayAt(Time(at)).count();
}

// A queue that is only just full takes some packets and not others, by chance. Without that, a
// sender whose packets are clocked by the queue's own departures takes every place that becomes
// free, and others starve for minutes (phase effects: S. Floyd, V. Jacobson, On Traffic Phase
// Effects in Packet-Switched Gateways, 1992), which jitter in real hosts prevents.
bool LinkQueue::Overflows(double waiting) {
  return waiting > link_.queue_bytes &&
         waiting > link_.queue_bytes + kRandomPackets * largest_packet_ * Uniform();
}

void LinkQueue::Shift(std::int64_t now, std::int64_t delta) {
  const double from = link_.rate.BytesBy(static_cast<double>(now));
  const double to = link_.rate.BytesBy(static_cast<double>(now + delta));
  put_off_until_ = now + delta;
  put_off_ = std::max(0.0, taken_ - from);
  taken_ = to + put_off_;
  control_taken_ = to + std::max(0.0, control_taken_ - from);
}

std::int64_t LinkQueue::WireBytesBy(std::int64_t now) const {
  const double waiting =
      now < put_off_until_ ? put_off_ : taken_ - link_.rate.BytesBy(static_cast<double>(now));
  return wire_bytes_ - std::llround(std::max(0.0, waiting));
}

// Losses come one by one, or, with bursts, by the chain of E. N. Gilbert (Bell System Technical
// Journal 39, 1960): all packets of a burst are lost, its length is geometric with the mean asked
// for, and the time between bursts makes the mean loss right.
bool LinkQueue::Lost(double loss_factor) {
  if (link_.loss == 0) return false;
  if (link_.loss_burst == 1) return Uniform() < std::min(1.0, link_.loss * loss_factor);
  if (in_burst_) {
    in_burst_ = Uniform() >= 1 / link_.loss_burst;
  } else {
    const double begins = link_.loss / ((1 - link_.loss) * link_.loss_burst);
    in_burst_ = Uniform() < std::min(1.0, begins * loss_factor);
  }
  return in_burst_;
}

double LinkQueue::Uniform() {
  random_ += 0x9e3779b97f4a7c15;
  return static_cast<double>(Mix(random_) >> 11) * 0x1p-53;
}

}  // namespace spes::sim
