#include "sim/ns3/link.h"

#include <ns3/nstime.h>
#include <ns3/simulator.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace spes::sim {
namespace {

// SplitMix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014): the value at this place of the sequence.
std::uint64_t Mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace

Link::Link(const LinkConfig& config, Arrived arrived)
    : config_(config),
      arrived_(std::move(arrived)),
      ns_per_byte_(8e9 / config.bps),
      random_(Mix(config.seed) + config.stream) {}

bool Link::Send(Segment&& segment) {
  // Doubles hold nanoseconds to 0.1 ns for a week and to 1 ns for three months of virtual time.
  const auto now = static_cast<double>(ns3::Simulator::Now().GetTimeStep());
  const double sending = segment.wire_bytes * ns_per_byte_;
  const double backlog = std::max(0.0, free_ - now);
  const double longest_wait = config_.queue_bytes * ns_per_byte_;
  double end;
  if (segment.control) {
    const double in_service = std::min(backlog, config_.largest_packet * ns_per_byte_);
    const double start = std::max(now + in_service, control_free_);
    if (start - now > longest_wait) return false;
    end = control_free_ = start + sending;
    free_ = std::max(free_, now) + sending;
  } else {
    if (backlog > longest_wait) return false;
    end = free_ = std::max(free_, now) + sending;
  }
  if (config_.loss > 0 && Lost()) return false;
  Fly(segment.control ? control_ : bulk_, std::llround(end) + config_.delay.count(),
      std::move(segment));
  return true;
}

// A stream of its own for each link, so that traffic elsewhere does not change what is lost here.
bool Link::Lost() {
  random_ += 0x9e3779b97f4a7c15;
  return static_cast<double>(Mix(random_) >> 11) * 0x1p-53 < config_.loss;
}

void Link::Fly(Lane& lane, std::int64_t at, Segment&& segment) {
  const bool first = lane.empty();
  lane.push_back({at, std::move(segment)});
  if (!first) return;
  const std::int64_t now = ns3::Simulator::Now().GetTimeStep();
  ns3::Simulator::Schedule(ns3::TimeStep(at - now), &Link::Land, this, &lane);
}

void Link::Land(Lane* lane) {
  const std::int64_t now = ns3::Simulator::Now().GetTimeStep();
  while (!lane->empty() && lane->front().at <= now) {
    Segment segment = std::move(lane->front().segment);
    lane->pop_front();
    arrived_(std::move(segment));
  }
  if (lane->empty()) return;
  ns3::Simulator::Schedule(ns3::TimeStep(lane->front().at - now), &Link::Land, this, lane);
}

}  // namespace spes::sim
