// Frames of real hosts on the packet level's links, in virtual time.
#ifdef SPES_NS3
#include "sim/ns3/frame_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "sim/event_loop.h"
#include "sim/ns3/packet_network.h"
#include "tests/sim/levels.h"
#include "tests/sim/two_sites.h"

namespace spes::sim {
namespace {

using namespace std::chrono_literals;

constexpr int kFull = 1500, kFullWire = 1502;

class Frames {
 public:
  explicit Frames(const Topology& topology, const TcpConfig& tcp = {})
      : network_(topology, tcp,
                 {.now = [this] { return loop_.Now(); },
                  .after = [this](Time delay, auto event) { loop_.After(delay, event); }}) {}

  // A full frame that sets out at `t`. When it arrives is in arrivals().
  void SendAt(Time t, int from, int to) {
    const std::size_t place = arrivals_.size();
    arrivals_.push_back(kNever);
    loop_.At(t, [this, from, to, place] {
      network_.Send(from, to, kFull, [this, place] { arrivals_[place] = loop_.Now(); });
    });
  }
  void Run() { loop_.Run(); }

  const std::vector<Time>& arrivals() const { return arrivals_; }  // kNever: dropped
  std::int64_t arrived() const {
    return static_cast<std::int64_t>(arrivals_.size()) - std::ranges::count(arrivals_, kNever);
  }
  const FrameNetwork& network() const { return network_; }

 private:
  EventLoop loop_;
  FrameNetwork network_;
  std::vector<Time> arrivals_;
};

double Serialisation(const LinkGraph& graph, int from, int to) {
  double seconds = 0;
  for (const int link : graph.Route(from, to)) {
    seconds += kFullWire * 8 / graph.links()[link].bps;
  }
  return seconds;
}

TEST(FrameNetwork, AFrameTakesItsTimeOnEveryLink) {
  Topology topology = TwoSites();
  for (Host& host : topology.hosts) host.link.loss = 0;
  for (auto& row : topology.paths) {
    for (auto& path : row) path->loss = 0;
  }
  for (const auto& [from, to] : {std::pair{0, 2}, {2, 0}, {0, 1}}) {
    Frames frames(topology);
    frames.SendAt(5ms, from, to);
    frames.Run();
    const LinkGraph& graph = frames.network().graph();
    EXPECT_NEAR(ToSeconds(frames.arrivals()[0] - 5ms),
                ToSeconds(graph.OneWay(from, to)) + Serialisation(graph, from, to), 5e-9);
    for (const int link : graph.Route(from, to)) {
      EXPECT_EQ(frames.network().queues()[link].WireBytesBy(Time(1s).count()), kFullWire);
    }
  }
}

// The same bytes on the wire, at the same rate, as the packet level's segments.
TEST(FrameNetwork, AStreamOfFramesIsAsFastAsThePacketLevels) {
  const Topology topology = Star(2, {.down_bps = 20e6, .up_bps = 1e9, .rtt = 2ms});
  const auto packets = MakePacketNetwork(topology, {});
  packets->Prepare(0, 1, 1);
  const FlowResult flow = Transfer(*packets, {.from = 0, .to = 1, .bytes = 1000 * 1448});
  Frames frames(topology);
  constexpr Time kInterval = std::chrono::nanoseconds(600'800);  // of 1502 bytes at 20 Mbps
  for (int i = 0; i < 1000; ++i) frames.SendAt(kInterval * i, 0, 1);
  frames.Run();
  EXPECT_EQ(frames.arrived(), 1000);
  const double start_up = 0.02;  // what TCP needs more: a few round trips
  EXPECT_NEAR(ToSeconds(frames.arrivals().back()), ToSeconds(flow.end - flow.start), start_up);
  EXPECT_EQ(frames.network().queues()[0].WireBytesBy(Time(10s).count()), flow.wire_bytes);
}

TEST(FrameNetwork, RatesDifferByDirection) {
  const Topology topology = Star(2, {.down_bps = 100e6, .up_bps = 10e6, .rtt = 10ms});
  Frames frames(topology);
  for (int i = 0; i < 10; ++i) frames.SendAt(0ms, 0, 1);
  frames.Run();
  const auto& arrivals = frames.arrivals();
  EXPECT_NEAR(ToSeconds(arrivals[9] - arrivals[0]), 9 * kFullWire * 8 / 10e6, 1e-6);
}

// A burst fills the queue, and what it has no room for is dropped: all but what waits, the frame
// being sent, and the two that chance may add.
TEST(FrameNetwork, AFullQueueDropsWhatComes) {
  const Topology topology = Star(2, {.down_bps = 1e9, .up_bps = 10e6, .rtt = 20ms});
  Frames frames(topology);
  for (int i = 0; i < 1000; ++i) frames.SendAt(0ms, 0, 1);
  frames.Run();
  const double queue = frames.network().graph().links()[0].queue_bytes;
  EXPECT_NEAR(static_cast<double>(frames.arrived()), queue / kFullWire + 2, 2);
  EXPECT_EQ(frames.network().queues()[0].overflowed_packets(), 1000 - frames.arrived());
  EXPECT_EQ(frames.network().queues()[0].dropped_packets(), 1000 - frames.arrived());
}

TEST(FrameNetwork, LossesAreNoOverflows) {
  constexpr int kFrames = 20'000;
  constexpr double kLoss = 0.02;
  const Topology topology = Star(2, {.down_bps = 1e9, .up_bps = 1e9, .rtt = 2ms, .loss = kLoss});
  Frames frames(topology);
  for (int i = 0; i < kFrames; ++i) frames.SendAt(i * 100us, 0, 1);
  frames.Run();
  const double expected = kFrames * (1 - kLoss) * (1 - kLoss);  // up and down
  EXPECT_NEAR(static_cast<double>(frames.arrived()), expected, 5 * std::sqrt(kFrames * 2 * kLoss));
  std::int64_t dropped = 0;
  for (const LinkQueue& queue : frames.network().queues()) {
    dropped += queue.dropped_packets();
    EXPECT_EQ(queue.overflowed_packets(), 0);
  }
  EXPECT_EQ(dropped, kFrames - frames.arrived());
}

TEST(FrameNetwork, ConditionsCountFromTheStart) {
  AccessLink link{.down_bps = 100e6, .up_bps = 100e6, .rtt = 20ms};
  link.conditions.outages = {{.at = 1s, .duration = 500ms}};
  link.conditions.rtt_steps = {{.at = 100ms, .extra = 60ms}, {.at = 3s, .extra = 0ms}};
  Topology topology = Star(2, {.down_bps = 1e9, .up_bps = 1e9});
  topology.hosts[0].link = link;
  Frames frames(topology);
  for (const Time at : {Time(0ms), Time(500ms), Time(1s + 200ms), Time(2999ms), Time(3s + 1ms)}) {
    frames.SendAt(at, 0, 1);
  }
  frames.Run();
  const auto& arrivals = frames.arrivals();
  EXPECT_NEAR(ToSeconds(arrivals[0]), 0.010, 3e-4);
  EXPECT_NEAR(ToSeconds(arrivals[1]), 0.540, 3e-4);
  EXPECT_NEAR(ToSeconds(arrivals[2]), 1.540, 3e-4) << "waits for the end of the outage";
  EXPECT_NEAR(ToSeconds(arrivals[3]), 3.039, 3e-4);
  EXPECT_GE(arrivals[4], arrivals[3]) << "the link is shorter now, but none overtakes another";
  EXPECT_NEAR(ToSeconds(arrivals[4]), 3.039, 3e-4);
}

}  // namespace
}  // namespace spes::sim
#endif  // SPES_NS3
