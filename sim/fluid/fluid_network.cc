#include "sim/fluid/fluid_network.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/fluid/fluid_engine.h"
#include "sim/fluid/tcp_model.h"

namespace spes::sim {
namespace {

// Measured with the packet level: 2 to 16 transfers at once, of 5 to 200 MB, through one link of 50
// Mbps to 1 Gbps that is shared, from access links of 20 to 500 Mbps or as wide as the shared one,
// with round trips of 20 to 150 ms and queues of 0.25 and 1 BDP; 90 runs. The times of the last
// transfer, the median and the 90th percentile then are right to 5 % on average, and in a single
// run mostly to 15 %; the median of sixteen transfers of 200 MB comes 12 % early. None of these
// constants is sharp: half or twice as much adds a few per cent of error.

// A full queue is filled to this part on average: where flows of different round trips meet in it,
// their shares are inverse to their round trips with the time in the queue.
constexpr double kQueueFilled = 0.5;
// CUBIC stops to double before its windows overflow a queue, and they grow on while it is full, to
// this times what fits.
constexpr double kCubicOvershoot = 2;
// CUBIC's first loss comes when its windows have become so many times larger.
constexpr double kCubicUnhurt = 3;
// What losses leave on average of the largest window that fits a path.
constexpr double kLossesLeave = 0.75;
// After a second time-out (the first comes so long after a round trip, the second twice as long
// after the first) about so many initial windows are left: 6 to 9 Mbps at 40 ms, after 3 s without
// a link, where there had been 50.
constexpr Time kLeastTimeout = std::chrono::milliseconds(200);
constexpr double kTimeoutsLeave = 2;

constexpr double kWeightNs = 1e8;  // the round trip whose weight is 1

class TcpTransport : public Transport {
 public:
  TcpTransport(std::shared_ptr<const LinkGraph> graph, const TcpConfig& tcp)
      : graph_(std::move(graph)), tcp_(tcp) {}

  double efficiency() const override {
    return static_cast<double>(tcp_.segment_bytes) / WireBytes(tcp_.segment_bytes);
  }
  bool priorities() const override { return true; }
  bool windows() const override { return true; }

  Course Plan(const Flow& flow, Time now, bool met) const override {
    const std::vector<Link>& links = graph_->links();
    const double payload = static_cast<double>(std::min<std::int64_t>(
        tcp_.segment_bytes, flow.bytes / flow.streams + (flow.bytes % flow.streams > 0)));
    Course course;
    double there = 0, back = 0, passes = 1, spared = 1;
    double slowest = 0, packets = 0, segments = 0;  // ns
    for (const int i : graph_->Route(flow.from, flow.to)) {
      const Link& link = links[i];
      const double ns_per_byte = 8e9 / link.bps;
      there += static_cast<double>(link.DelayAt(now).count());
      packets += (payload + kHeaderBytes) * ns_per_byte;
      segments += WireBytes(tcp_.segment_bytes) * ns_per_byte;
      slowest = std::max(slowest, (payload + kHeaderBytes) * ns_per_byte);
      passes *= 1 - link.loss;
      spared *= 1 - link.loss / link.loss_burst;
    }
    for (const int i : graph_->Route(flow.to, flow.from)) {
      back += static_cast<double>(links[i].DelayAt(now).count());
      back += WireBytes(0) * 8e9 / links[i].bps;
    }
    course.rtt_ns = there + segments + back;
    // The last packet crosses all links but the slowest, where it is part of the flow, after it.
    double latency = there + (flow.bytes > 0 ? packets - slowest : 0);
    if (!met) latency += there + back;
    course.latency = Time(std::llround(latency));
    course.loss = 1 - passes;
    course.weight = Weight(flow, course, 0);
    course.increment = static_cast<double>(flow.streams) * tcp_.segment_bytes;
    course.window = tcp_.initial_window * course.increment;
    AddStages(flow, 1 - spared, &course);
    return course;
  }

  double Weight(const Flow& flow, const Course& course, double wait_ns) const override {
    return flow.streams * kWeightNs / (course.rtt_ns + kQueueFilled * wait_ns);
  }

  double Queued(double wait_ns) const override { return kQueueFilled * wait_ns; }

  double AfterOvershoot(double window) const override {
    return window * (tcp_.congestion == "cubic" ? kCubicOvershoot : kLossesLeave);
  }

  double AfterNarrowing(double window, double fits) const override {
    return std::min(window, kLossesLeave * fits);
  }

  double AfterOutage(const Course& course, double window, Time outage) const override {
    const bool again = outage > 3 * Timeout(course);
    return std::min(window, again ? kTimeoutsLeave * course.window : kLossesLeave * window);
  }

  Time Timeout(const Course& course) const override {
    return Time(std::llround(course.rtt_ns)) + kLeastTimeout;
  }

  // Reno: a segment per round trip. CUBIC: from the plateau at its largest window on, by 0.4 t³
  // segments (RFC 9438, equation 1), but by 3 (1 − β)/(1 + β) segments per round trip at least,
  // with β = 0.7 (section 4.3), and, as in Linux, by a twentieth before the first loss.
  double GrowNs(const Course& course, double from, double to, double first) const override {
    const double segments = (to - from) / course.increment;
    if (tcp_.congestion != "cubic") return segments * course.rtt_ns;
    const double ns = std::min(segments * course.rtt_ns / 0.53, std::cbrt(segments / 0.4) * 1e9);
    if (to > kCubicUnhurt * first) return ns;
    return std::min(ns, std::log(to / from) / std::log(1.05) * course.rtt_ns);
  }

  void Count(const Course& course, double wait_ns, FlowResult* result) const override {
    const std::int64_t payload = result->delivered_bytes;
    const std::int64_t segments = Segments(payload, result->flow.streams);
    // What is sent again can be lost again.
    const double again = course.loss / (1 - course.loss);
    result->retransmissions = std::llround(static_cast<double>(segments) * again);
    result->retransmitted_bytes = std::llround(static_cast<double>(payload) * again);
    result->dropped_packets = result->retransmissions;
    result->wire_bytes =
        payload + result->retransmitted_bytes + kHeaderBytes * (segments + result->retransmissions);
    const auto rtt = static_cast<std::int64_t>(course.rtt_ns);
    if (payload == 0 || result->end - result->start < Time(rtt)) return;
    result->rtt_min = Time(rtt);
    result->rtt_mean = Time(rtt + std::llround(wait_ns));
  }

  // One for every second segment.
  double AckBytes(const Flow& flow, double delivered_bytes) const override {
    return WireBytes(0) *
           std::ceil(static_cast<double>(Segments(std::llround(delivered_bytes), flow.streams)) /
                     2);
  }

 private:
  std::int64_t Segments(std::int64_t bytes, int streams) const {
    const auto of = [this](std::int64_t part) {
      return (part + tcp_.segment_bytes - 1) / tcp_.segment_bytes;
    };
    const std::int64_t more = bytes % streams;
    return more * of(bytes / streams + 1) + (streams - more) * of(bytes / streams);
  }

  void AddStages(const Flow& flow, double p, Course* course) const {
    const auto bytes = static_cast<double>(flow.bytes);
    if (p <= 0) {
      course->stages = {{.until = bytes}};
      return;
    }
    double most = MaxMin::kInfinity;
    course->fastest = 0;
    for (const int i : graph_->Route(flow.from, flow.to)) {
      const Link& link = graph_->links()[i];
      course->fastest = std::max(course->fastest, 8e9 / (link.bps * efficiency()));
      most = std::min(most, (link.bps * course->rtt_ns / 8e9 + link.queue_bytes) /
                                WireBytes(tcp_.segment_bytes));
    }
    const double rtt_s = course->rtt_ns * 1e-9;
    const auto [found, fresh] = loss_stages_.try_emplace({p, rtt_s, most});
    if (fresh) {
      found->second = LossStages(tcp_.congestion, p, rtt_s, tcp_.initial_window, most);
    }
    for (const LossStage& stage : found->second) {
      course->stages.push_back({.until = std::min(stage.until * course->increment, bytes),
                                .clean = stage.clean,
                                .lossy = stage.inverse * course->rtt_ns / course->increment});
      if (course->stages.back().until == bytes) return;
    }
  }

  const std::shared_ptr<const LinkGraph> graph_;
  const TcpConfig tcp_;
  // By loss, round trip and what the path holds.
  mutable std::map<std::tuple<double, double, double>, std::vector<LossStage>> loss_stages_;
};

}  // namespace

std::unique_ptr<Network> MakeFluidNetwork(const Topology& topology, const TcpConfig& tcp) {
  auto graph = std::make_shared<const LinkGraph>(topology, tcp);
  return std::make_unique<FluidEngine>(graph, tcp, std::make_unique<TcpTransport>(graph, tcp));
}

}  // namespace spes::sim
