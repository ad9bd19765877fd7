// What is particular to the hybrid and coarse levels; the conformance suite runs over them too.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "sim/ns3/packet_network.h"
#include "tests/sim/levels.h"

namespace spes::sim {
namespace {

using namespace std::chrono_literals;

const AccessLink kLink{.down_bps = 100e6, .up_bps = 100e6, .rtt = 20ms};

using Make = std::unique_ptr<Network> (*)(const Topology&, const TcpConfig&);

double Seconds(Make make, const Topology& topology, const Flow& flow) {
  const auto network = make(topology, {});
  PrepareAll(*network, topology);
  const FlowResult result = Transfer(*network, flow);
  EXPECT_EQ(result.outcome, FlowOutcome::kDone);
  EXPECT_EQ(result.delivered_bytes, flow.bytes);
  return ToSeconds(result.end - result.start);
}

TEST(Hybrid, ALoneFlowTakesAsLongAsInPackets) {
  const Topology topology = Star(2, kLink);
  for (const std::int64_t bytes : {1'000'000, 20'000'000, 50'000'000}) {
    const Flow flow{.from = 0, .to = 1, .bytes = bytes};
    const double packet = Seconds(MakePacketNetwork, topology, flow);
    EXPECT_NEAR(Seconds(MakeHybridNetwork, topology, flow), packet, 1e-3 * packet);
  }
}

// In packets each of these would take longer than any test may.
TEST(Hybrid, HugeFlowsTakeTheTimeOfTheirBytes) {
  for (const int segment : {1448, 8948}) {
    for (const std::int64_t bytes : {8'000'000'000, 10'000'000'000'000}) {
      const auto network = MakeHybridNetwork(Star(2, kLink), {.segment_bytes = segment});
      network->Prepare(0, 1, 1);
      const FlowResult result = Transfer(*network, {.from = 0, .to = 1, .bytes = bytes});
      const double share = static_cast<double>(segment) / WireBytes(segment);
      const double ideal = static_cast<double>(bytes) * 8 / 100e6 / share;
      EXPECT_NEAR(ToSeconds(result.end - result.start), ideal, 0.4 + 1e-5 * ideal) << segment;
    }
  }
}

// What passes unseen counts on the wire and on every link.
TEST(Hybrid, UnseenBytesAreCounted) {
  const Topology topology = Star(2, kLink);
  const auto network = MakeHybridNetwork(topology, {});
  network->Prepare(0, 1, 1);
  const std::int64_t bytes = 3'000'000'000;
  FlowResult result;
  network->Start({.from = 0, .to = 1, .bytes = bytes}, [&](const FlowResult& r) { result = r; });
  network->AdvanceTo(100s);
  while (network->Now() < 100s) network->AdvanceTo(100s);
  const double rate = 100e6 / 8;
  EXPECT_NEAR(static_cast<double>(network->Usage()[0].wire_bytes), 100 * rate, 0.02 * 100 * rate)
      << "midway";
  while (result.id == 0) network->AdvanceTo(kNever);
  const double wire = static_cast<double>(bytes) * 1502 / 1448;
  EXPECT_NEAR(static_cast<double>(result.wire_bytes), wire, 1e-5 * wire);
  const std::vector<LinkUsage> usage = network->Usage();
  const LinkGraph& graph = network->graph();
  const auto bytes_on = [&](int link) { return static_cast<double>(usage[link].wire_bytes); };
  const double there = bytes_on(graph.Route(0, 1).back()),
               back = bytes_on(graph.Route(1, 0).back());
  EXPECT_NEAR(there, wire, 1e-4 * wire);
  EXPECT_NEAR(back, wire / 1502 / 2 * 54, 0.02 * wire / 50)
      << "one acknowledgement for two segments";
  EXPECT_NEAR(bytes_on(graph.Route(0, 1)[1]), there + back, 1e-4 * wire) << "both directions";
}

TEST(Hybrid, ArrivalsAndDeparturesEndTheSkip) {
  const Topology topology = Star(4, kLink);
  constexpr int kSeeds = 4;
  // Mean ends of the flows; who yields how much is a matter of chance.
  const auto run = [&](Make make) {
    std::vector<double> ends(3);
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      const auto network = make(topology, {.seed = seed});
      PrepareAll(*network, topology);
      int left = 3;
      const auto note = [&](int i) {
        return [&, i](const FlowResult& r) {
          ends[i] += ToSeconds(r.end) / kSeeds;
          --left;
        };
      };
      network->Start({.from = 0, .to = 1, .bytes = 100'000'000}, note(0));
      while (network->Now() < 4s) network->AdvanceTo(4s);
      network->Start({.from = 2, .to = 1, .bytes = 30'000'000}, note(1));  // shares host 1's link
      network->Start({.from = 2, .to = 3, .bytes = 1'000'000}, note(2));
      while (left > 0) network->AdvanceTo(kNever);
    }
    return ends;
  };
  const std::vector<double> packet = run(MakePacketNetwork), hybrid = run(MakeHybridNetwork);
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(hybrid[i], packet[i], 0.15 * packet[i]) << i;
}

TEST(Hybrid, FlowsThatShareNoFullLinkDoNotDisturbEachOther) {
  Topology topology = Star(5, kLink);
  topology.hosts[4].link = {.down_bps = 1e9, .up_bps = 1e9, .rtt = 1ms};
  const auto network = MakeHybridNetwork(topology, {});
  PrepareAll(*network, topology);
  std::map<int, double> seconds;
  int left = 4;
  for (int i = 0; i < 4; ++i) {
    while (network->Now() < i * 3s) network->AdvanceTo(i * 3s);
    network->Start({.from = i, .to = 4, .bytes = 500'000'000}, [&, i](const FlowResult& r) {
      seconds[i] = ToSeconds(r.end - r.start);
      --left;
    });
  }
  while (left > 0) network->AdvanceTo(kNever);
  for (int i = 1; i < 4; ++i) EXPECT_NEAR(seconds[i], seconds[0], 1e-3);
}

TEST(Hybrid, CancelledMidwayItHasDeliveredItsShare) {
  const Topology topology = Star(2, kLink);
  const auto network = MakeHybridNetwork(topology, {});
  network->Prepare(0, 1, 1);
  FlowResult result;
  const FlowId id = network->Start({.from = 0, .to = 1, .bytes = 100'000'000'000},
                                   [&](const FlowResult& r) { result = r; });
  while (network->Now() < 1000s) network->AdvanceTo(1000s);
  network->Cancel(id);
  network->AdvanceTo(kNever);
  EXPECT_EQ(result.outcome, FlowOutcome::kCancelled);
  EXPECT_EQ(result.end, 1000s);
  const double expected = 1000 * 100e6 / 8 * 1448 / 1502;
  EXPECT_NEAR(static_cast<double>(result.delivered_bytes), expected, 0.001 * expected);
}

TEST(Hybrid, ACapacityChangeEndsTheSkipInTime) {
  Topology topology = Star(2, kLink);
  topology.hosts[0].link.up_trace =
      std::make_shared<const RateTrace>(RateTrace{{{0s, 80e6}, {60s, 20e6}}, 120s});
  // 60 s at 80 Mbps and 60 s at 20 Mbps: 750 MB of wire in 120 s.
  const double s = Seconds(MakeHybridNetwork, topology,
                           {.from = 0, .to = 1, .bytes = std::int64_t{750'000'000} * 1448 / 1502});
  EXPECT_NEAR(s, 120, 1.5);
}

TEST(Hybrid, AnEndlessOutageStallsTheFlow) {
  Topology topology = Star(2, kLink);
  topology.hosts[0].link.conditions.outages = {{.at = 50s, .duration = std::chrono::hours(10'000)}};
  const auto network = MakeHybridNetwork(topology, {.stall_timeout = 60s});
  network->Prepare(0, 1, 1);
  const FlowResult result = Transfer(*network, {.from = 0, .to = 1, .bytes = 10'000'000'000});
  EXPECT_EQ(result.outcome, FlowOutcome::kStalled);
  EXPECT_NEAR(ToSeconds(result.end), 110, 1);
}

// Whatever stands still in the queue for the time of a pass, control packets go before it.
TEST(Hybrid, ControlFlowsGoBeforeWhatPasses) {
  const Topology topology = Star(2, kLink);
  const auto network = MakeHybridNetwork(topology, {});
  PrepareAll(*network, topology);
  network->Start({.from = 0, .to = 1, .bytes = 4'000'000'000}, {});
  std::vector<double> seconds;
  for (Time at = 20s; at <= 100s; at += 20s) {
    while (network->Now() < at) network->AdvanceTo(at);
    for (const int from : {0, 1}) {
      network->Start(
          {.from = from, .to = 1 - from, .bytes = 300, .traffic_class = TrafficClass::kControl},
          [&](const FlowResult& r) { seconds.push_back(ToSeconds(r.end - r.start)); });
    }
  }
  while (network->Now() < 101s) network->AdvanceTo(101s);
  ASSERT_EQ(seconds.size(), 10u);
  for (const double s : seconds) EXPECT_NEAR(s, 0.0202, 0.0005);
}

// What a flow loses while it gets over a change is not what it loses from then on.
TEST(Hybrid, RecoveryIsNotExtrapolated) {
  Topology topology = Star(2, kLink);
  topology.hosts[0].link.up_trace = topology.hosts[1].link.down_trace =
      std::make_shared<const RateTrace>(RateTrace{{{0s, 10e6}, {20s, 200e6}, {25s, 10e6}}, 100s});
  const auto network = MakeHybridNetwork(topology, {});
  network->Prepare(0, 1, 1);
  const FlowResult result = Transfer(*network, {.from = 0, .to = 1, .bytes = 150'000'000});
  EXPECT_EQ(result.outcome, FlowOutcome::kDone);
  EXPECT_LT(result.retransmissions, 500) << "203 in packets";
  EXPECT_LT(result.dropped_packets, 500) << "190 in packets";
}

// The watch fires just after a pass has ended, before the next packet arrives.
TEST(Hybrid, WhatPassedIsProgress) {
  const Topology topology = Star(3, kLink);
  const auto network = MakeHybridNetwork(topology, {.stall_timeout = 60s});
  PrepareAll(*network, topology);
  std::optional<FlowOutcome> outcome;
  network->Start({.from = 0, .to = 1, .bytes = 4'000'000'000},
                 [&](const FlowResult& r) { outcome = r.outcome; });
  const Time shortly = 120s - 10ns;
  while (network->Now() < shortly) network->AdvanceTo(shortly);
  network->Start({.from = 2, .to = 1, .bytes = 1'000'000}, {});
  while (network->Now() < 121s) network->AdvanceTo(121s);
  EXPECT_FALSE(outcome) << Name(*outcome);
}

TEST(Hybrid, RandomLossKeepsItsMean) {
  AccessLink link = kLink;
  link.loss = 5e-4;  // of each of two links
  const Topology topology = Star(2, link);
  const Flow flow{.from = 0, .to = 1, .bytes = 80'000'000};
  double packet = 0, hybrid = 0, lost_packet = 0, lost_hybrid = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    for (const bool fast : {false, true}) {
      const TcpConfig tcp{.seed = seed};
      const auto network =
          fast ? MakeHybridNetwork(topology, tcp) : MakePacketNetwork(topology, tcp);
      network->Prepare(0, 1, 1);
      const FlowResult result = Transfer(*network, flow);
      (fast ? hybrid : packet) += ToSeconds(result.end) / 4;
      (fast ? lost_hybrid : lost_packet) += static_cast<double>(result.retransmissions) / 4;
    }
  }
  EXPECT_NEAR(hybrid, packet, 0.1 * packet);
  EXPECT_NEAR(lost_hybrid, lost_packet, 0.25 * lost_packet);
}

TEST(Coarse, ALoneFlowTakesAsLongAsInPackets) {
  for (const double mbps : {20, 200}) {
    const AccessLink link{.down_bps = mbps * 1e6, .up_bps = mbps * 1e6, .rtt = 20ms};
    const Flow flow{.from = 0, .to = 1, .bytes = 20'000'000};
    const double packet = Seconds(MakePacketNetwork, Star(2, link), flow);
    EXPECT_NEAR(Seconds(MakeCoarseNetwork, Star(2, link), flow), packet, 0.05 * packet);
  }
}

TEST(Coarse, HeadersAreThoseOfRealSegments) {
  const auto network = MakeCoarseNetwork(Star(2, kLink), {});
  network->Prepare(0, 1, 1);
  const FlowResult result = Transfer(*network, {.from = 0, .to = 1, .bytes = 1448 * 20'000});
  EXPECT_EQ(result.retransmissions, 0);
  EXPECT_NEAR(static_cast<double>(result.wire_bytes), 1502 * 20'000, 1502 * 2);
}

// Steady goodput at equal loss: the larger segments must not make it another TCP.
TEST(Coarse, RandomLossGivesTheSameRate) {
  AccessLink link = kLink;
  link.loss = 5e-4;
  const Topology topology = Star(2, link);
  double seconds[2] = {0, 0};
  for (const bool coarse : {false, true}) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      const TcpConfig tcp{.seed = seed};
      const auto network =
          coarse ? MakeCoarseNetwork(topology, tcp) : MakePacketNetwork(topology, tcp);
      network->Prepare(0, 1, 1);
      seconds[coarse] +=
          ToSeconds(Transfer(*network, {.from = 0, .to = 1, .bytes = 60'000'000}).end) / 4;
    }
  }
  EXPECT_NEAR(seconds[1], seconds[0], 0.15 * seconds[0]);
}

// Both of what overflows a queue and of what the wire loses.
TEST(Coarse, AFlowLosesWhatItsLinksLose) {
  AccessLink link = kLink;
  link.loss = 5e-5;
  Topology topology = Star(2, link);
  topology.hosts[1].link.down_bps = 60e6;
  topology.hosts[1].link.loss = 0;
  topology.hosts[1].link.queue_bdp = 0.1;
  for (const Make make : {MakePacketNetwork, MakeCoarseNetwork}) {
    const auto network = make(topology, {});
    network->Prepare(0, 1, 1);
    const FlowResult result = Transfer(*network, {.from = 0, .to = 1, .bytes = 40'000'000});
    const std::vector<LinkUsage> usage = network->Usage();
    std::int64_t dropped = 0;
    for (const int l : network->graph().Route(0, 1)) dropped += usage[l].dropped_packets;
    EXPECT_GT(usage[0].dropped_packets, 0) << "on the wire";
    EXPECT_GT(usage[3].dropped_packets, 0) << "in the queue";
    EXPECT_EQ(result.dropped_packets, dropped);
  }
}

}  // namespace
}  // namespace spes::sim
