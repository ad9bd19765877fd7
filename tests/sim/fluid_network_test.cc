// The fluid level over links that change, in accounts, and at its limits.
#include "sim/fluid/fluid_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#include "tests/sim/levels.h"

namespace spes::sim {
namespace {

using namespace std::chrono_literals;

constexpr double kEfficiency = 1448.0 / 1502;

AccessLink Wide(Time rtt = 20ms) { return {.down_bps = 1e9, .up_bps = 1e9, .rtt = rtt}; }

std::unique_ptr<Network> Make(const Topology& topology, const TcpConfig& tcp = {}) {
  auto network = MakeFluidNetwork(topology, tcp);
  PrepareAll(*network, topology);
  return network;
}

void Drain(Network& network) {
  while (network.NextEvent()) network.AdvanceTo(kNever);
}

void Pass(Network& network, Time until) {
  while (network.Now() < until) network.AdvanceTo(until);
}

std::shared_ptr<const RateTrace> Trace(std::vector<RateTrace::Step> steps) {
  return std::make_shared<RateTrace>(RateTrace{.steps = std::move(steps)});
}

double Seconds(const Topology& topology, std::int64_t bytes) {
  return ToSeconds(Transfer(*Make(topology), {.from = 0, .to = 1, .bytes = bytes}).end);
}

TEST(FluidNetwork, AChangeOfCapacityHasEffectAtItsTime) {
  Topology topology = Star(2, Wide());
  topology.hosts[1].link.down_bps = 80e6;
  const double constant = Seconds(topology, 100'000'000);
  // At 5 s 40 Mbps are left: what would take the remaining time takes twice as long.
  topology.hosts[1].link.down_trace = Trace({{0s, 80e6}, {5s, 40e6}});
  EXPECT_NEAR(Seconds(topology, 100'000'000), 5 + 2 * (constant - 5), 1e-6);
  // A change after the end has none.
  topology.hosts[1].link.down_trace = Trace({{0s, 80e6}, {1000s, 40e6}});
  EXPECT_NEAR(Seconds(topology, 100'000'000), constant, 1e-9);
}

// A window that a narrow link has cut grows slowly when the link is wide again.
TEST(FluidNetwork, AWindowNeedsTimeToFillALinkThatWidens) {
  const auto seconds = [](std::vector<RateTrace::Step> steps) {
    Topology topology = Star(2, Wide(50ms));
    topology.hosts[1].link.down_bps = 80e6;
    topology.hosts[1].link.queue_bdp = 0.1;
    topology.hosts[1].link.down_trace = Trace(std::move(steps));
    return ToSeconds(Transfer(*Make(topology, {.congestion = "reno"}),
                              {.from = 0, .to = 1, .bytes = 200'000'000})
                         .end);
  };
  const double constant = seconds({{0s, 80e6}});
  const double narrow = seconds({{0s, 80e6}, {5s, 8e6}, {7s, 80e6}});
  EXPECT_GT(narrow, constant + 2 * 0.9 + 3);
  EXPECT_LT(narrow, constant + 30) << "a segment per round trip";
}

TEST(FluidNetwork, AFlowResumesAfterAnOutage) {
  Topology topology = Star(2, Wide());
  const double without = Seconds(topology, 500'000'000);
  topology.hosts[1].link.conditions.outages = {{.at = 2s, .duration = 30s}};
  // After so many time-outs the window has to grow anew.
  EXPECT_GT(Seconds(topology, 500'000'000), without + 30);
  EXPECT_LT(Seconds(topology, 500'000'000), without + 45);
}

TEST(FluidNetwork, AFlowThatStartsInAnOutageWaitsForItsEnd) {
  Topology topology = Star(2, Wide());
  topology.hosts[1].link.conditions.outages = {{.at = 0s, .duration = 30s}};
  const FlowResult result = Transfer(*Make(topology), {.from = 0, .to = 1, .bytes = 5'000'000});
  EXPECT_EQ(result.outcome, FlowOutcome::kDone);
  EXPECT_GT(result.end, 30s);
  EXPECT_LT(result.end, 31s);
}

TEST(FluidNetwork, AnOutageWithoutEndStallsEveryFlowOverIt) {
  Topology topology = Star(4, Wide());
  topology.hosts[1].link.conditions.outages = {{.at = 2s, .duration = 1000h}};
  const auto network = Make(topology, {.stall_timeout = 60s});
  std::vector<FlowResult> results;
  const auto note = [&](const FlowResult& r) { results.push_back(r); };
  network->Start({.from = 0, .to = 1, .bytes = 5'000'000'000}, note);
  network->Start({.from = 2, .to = 1, .bytes = 5'000'000'000}, note);
  network->Start({.from = 0, .to = 3, .bytes = 1'000'000}, note);
  Pass(*network, 10s);
  network->Start({.from = 3, .to = 1, .bytes = 5'000'000'000}, note);
  Drain(*network);
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(results[0].outcome, FlowOutcome::kDone);
  for (int i = 1; i < 4; ++i) EXPECT_EQ(results[i].outcome, FlowOutcome::kStalled) << i;
  EXPECT_EQ(results[1].end, 62s);
  EXPECT_EQ(results[2].end, 62s);
  EXPECT_GT(results[1].delivered_bytes, 50'000'000);
  EXPECT_EQ(results[3].end, 70s);
  EXPECT_EQ(results[3].delivered_bytes, 0);
  EXPECT_FALSE(network->NextEvent());
}

// Two gigabytes at 1 bit/s take longer than a Time can say: nothing is ever due.
TEST(FluidNetwork, AFlowBeyondAllTimeIsSaidToBe) {
  const auto network = Make(Star(2, {.down_bps = 1, .up_bps = 1}));
  network->Start({.from = 0, .to = 1, .bytes = 2'000'000'000}, {});
  Pass(*network, 1h);
  EXPECT_EQ(network->Now(), 1h);
  EXPECT_THROW(Drain(*network), std::runtime_error);
}

TEST(FluidNetwork, ShortOutagesAgainAndAgainStallNobody) {
  Topology topology = Star(2, Wide());
  topology.hosts[1].link.conditions.outages = {{.at = 1s, .duration = 9s, .every = 10s}};
  const auto network = Make(topology, {.stall_timeout = 10s});
  const FlowResult result = Transfer(*network, {.from = 0, .to = 1, .bytes = 1'000'000'000});
  EXPECT_EQ(result.outcome, FlowOutcome::kDone);
  EXPECT_GT(result.end, 80s);
}

TEST(FluidNetwork, ALongerRoundTripSlowsWhatWaitsForIt) {
  Topology topology = Star(2, Wide(10ms));
  topology.hosts[1].link.loss = 1e-3;
  const double before = Seconds(topology, 20'000'000);
  topology.hosts[1].link.conditions.rtt_steps = {{.at = 0s, .extra = 20ms}};
  EXPECT_NEAR(Seconds(topology, 20'000'000) / before, 2, 0.1) << "twice the round trip";
  topology.hosts[1].link.conditions.rtt_steps = {{.at = 2s, .extra = 20ms}};
  const double later = Seconds(topology, 20'000'000);
  EXPECT_NEAR(later, 2 + 2 * (before - 2), 0.3);
}

TEST(FluidNetwork, WireBytesArePayloadHeadersAndRetransmissions) {
  Topology topology = Star(2, Wide());
  for (const std::int64_t bytes : {1, 1448, 1449, 1'000'000}) {
    const FlowResult result = Transfer(*Make(topology), {.from = 0, .to = 1, .bytes = bytes});
    EXPECT_EQ(result.wire_bytes, bytes + 54 * ((bytes + 1447) / 1448));
    EXPECT_EQ(result.dropped_packets, 0);
  }
  const auto four = Transfer(*Make(topology), {.from = 0, .to = 1, .bytes = 5, .streams = 4});
  EXPECT_EQ(four.wire_bytes, 5 + 4 * 54);
  topology.hosts[0].link.loss = 0.01;
  topology.hosts[1].link.loss = 0.02;
  const FlowResult lossy = Transfer(*Make(topology), {.from = 0, .to = 1, .bytes = 14'480'000});
  EXPECT_NEAR(lossy.dropped_packets, 10'000 * 0.0298 / 0.9702, 2);
  EXPECT_EQ(lossy.retransmissions, lossy.dropped_packets);
  EXPECT_EQ(lossy.wire_bytes,
            lossy.flow.bytes + lossy.retransmitted_bytes + 54 * (10'000 + lossy.retransmissions));
}

// Each link has carried what the flows over it have sent, and the acknowledgements of those the
// other way.
TEST(FluidNetwork, LinksCarryWhatFlowsSend) {
  const int hosts = 6;
  Topology topology = Star(hosts, Wide());
  const auto network = Make(topology);
  std::vector<FlowResult> results;
  std::mt19937 random(3);
  for (int i = 0; i < 40; ++i) {
    const int from = static_cast<int>(random() % hosts);
    const int to = static_cast<int>((from + 1 + random() % (hosts - 1)) % hosts);
    network->Start({.from = from,
                    .to = to,
                    .bytes = static_cast<std::int64_t>(random() % 20'000'000),
                    .streams = 1 + static_cast<int>(random() % 3)},
                   [&](const FlowResult& r) { results.push_back(r); });
    if (i % 4 == 3) network->AdvanceTo(network->Now() + 50ms);
  }
  Pass(*network, 200ms);
  network->Cancel(7);
  Drain(*network);
  ASSERT_EQ(results.size(), 40u);
  std::vector<std::int64_t> sent(network->graph().links().size());
  for (const FlowResult& r : results) {
    const auto acks = 54 * ((r.wire_bytes - r.delivered_bytes) / 54 + 1) / 2;
    for (const int link : network->graph().Route(r.flow.from, r.flow.to)) {
      sent[link] += r.wire_bytes;
    }
    for (const int link : network->graph().Route(r.flow.to, r.flow.from)) sent[link] += acks;
  }
  const std::vector<LinkUsage> usage = network->Usage();
  for (std::size_t i = 0; i < sent.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(usage[i].wire_bytes), static_cast<double>(sent[i]), 54 * 40);
    EXPECT_EQ(usage[i].dropped_packets, 0);
  }
}

TEST(FluidNetwork, LossyLinksDropWhatFlowsLose) {
  Topology topology = Star(2, Wide());
  topology.hosts[0].link.loss = 0.01;
  topology.hosts[1].link.loss = 0.03;
  const auto network = Make(topology);
  const FlowResult result = Transfer(*network, {.from = 0, .to = 1, .bytes = 14'480'000});
  const std::vector<LinkUsage> usage = network->Usage();
  EXPECT_NEAR(static_cast<double>(usage[0].dropped_packets), 10'000 * 0.01 / (0.99 * 0.97), 3);
  EXPECT_NEAR(static_cast<double>(usage[0].dropped_packets + usage[3].dropped_packets),
              static_cast<double>(result.dropped_packets), 1);
  EXPECT_EQ(usage[0].wire_bytes, result.wire_bytes);
  EXPECT_NEAR(static_cast<double>(usage[3].wire_bytes),
              0.99 * static_cast<double>(result.wire_bytes), 1);
}

// Never less than before, never more than the link can, and up to date in the middle of flows.
TEST(FluidNetwork, UsageGrowsNoFasterThanTheCapacity) {
  Topology topology = Star(9, {.down_bps = 50e6, .up_bps = 50e6, .rtt = 20ms});
  topology.hosts[0].link.down_trace = Trace({{0s, 80e6}, {3s, 20e6}, {6s, 100e6}});
  const auto network = Make(topology);
  for (int i = 1; i <= 8; ++i) network->Start({.from = i, .to = 0, .bytes = 8'000'000}, {});
  const RateCurve& curve = network->graph().links()[9].rate;
  std::int64_t last = 0;
  double unused = 0;
  for (Time t = 100ms; network->NextEvent(); t += 100ms) {
    while (network->NextEvent() && network->Now() < t) network->AdvanceTo(t);
    const std::int64_t now = network->Usage()[9].wire_bytes;
    const double can = curve.BytesBy(static_cast<double>(network->Now().count()));
    EXPECT_GE(now, last);
    EXPECT_LE(static_cast<double>(now), can + 8 * 54);
    last = now;
    unused = can - static_cast<double>(now);
  }
  EXPECT_GE(last, 64'000'000);
  EXPECT_LT(unused, 0.15 * static_cast<double>(last));
}

TEST(FluidNetwork, ControlDoesNotWaitForBulk) {
  const auto latency = [](bool busy) {
    const auto network = Make(Star(3, {.down_bps = 20e6, .up_bps = 20e6, .rtt = 40ms}));
    if (busy) network->Start({.from = 0, .to = 1, .bytes = 50'000'000}, {});
    Pass(*network, 3s);
    const Flow flow{.from = 0, .to = 2, .bytes = 10'000, .traffic_class = TrafficClass::kControl};
    return Transfer(*network, flow).end - 3s;
  };
  EXPECT_EQ(latency(true), latency(false));
  EXPECT_LT(latency(true), 50ms);
}

// What control flows take is not there for others.
TEST(FluidNetwork, BulkYieldsToControl) {
  const auto network = Make(Star(4, {.down_bps = 20e6, .up_bps = 20e6, .rtt = 2ms}));
  Time bulk{0};
  network->Start({.from = 0, .to = 1, .bytes = 10'000'000},
                 [&](const FlowResult& r) { bulk = r.end; });
  const double alone = 10e6 * 8 / 20e6 / kEfficiency;
  Pass(*network, 1s);
  network->Start({.from = 0, .to = 2, .bytes = 5'000'000, .traffic_class = TrafficClass::kControl},
                 {});
  Drain(*network);
  EXPECT_NEAR(ToSeconds(bulk), alone * 1.5, 0.05);
}

TEST(FluidNetwork, RoundTripsAreEstimated) {
  const Topology topology = Star(2, {.down_bps = 100e6, .up_bps = 100e6, .rtt = 25ms});
  const FlowResult result = Transfer(*Make(topology), {.from = 0, .to = 1, .bytes = 50'000'000});
  ASSERT_TRUE(result.rtt_min && result.rtt_mean);
  EXPECT_NEAR(ToSeconds(*result.rtt_min), 0.050, 0.001);
  EXPECT_GT(*result.rtt_mean, *result.rtt_min + 5ms) << "the queue fills";
  EXPECT_LT(*result.rtt_mean, 100ms);
  EXPECT_FALSE(Transfer(*Make(topology), {.from = 0, .to = 1, .bytes = 1}).rtt_min)
      << "over before the acknowledgement";
}

TEST(FluidNetwork, SizesBeyond32BitsAreExact) {
  for (const std::int64_t bytes : {8'000'000'000, 100'000'000'000}) {
    const FlowResult result =
        Transfer(*Make(Star(2, Wide(1ms))), {.from = 0, .to = 1, .bytes = bytes});
    EXPECT_EQ(result.delivered_bytes, bytes);
    EXPECT_EQ(result.wire_bytes, bytes + 54 * ((bytes + 1447) / 1448));
    EXPECT_NEAR(ToSeconds(result.end), static_cast<double>(bytes) * 8 / 1e9 / kEfficiency, 0.05);
  }
}

// Whoever is started first: the same.
TEST(FluidNetwork, TheOrderOfStartsDoesNotCount) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 10; ++trial) {
    Topology topology = Star(6, Wide());
    for (Host& host : topology.hosts) {
      host.link.up_bps = 20e6 + static_cast<double>(random() % 16) * 12e6;
      host.link.rtt = Time((5 + random() % 60) * 1'000'000);
      if (random() % 3 == 0) host.link.loss = 1e-3;
    }
    std::vector<Flow> flows;
    for (int i = 0; i < 12; ++i) {
      const int from = static_cast<int>(random() % 6);
      flows.push_back({.from = from,
                       .to = static_cast<int>((from + 1 + random() % 5) % 6),
                       .bytes = 1'000'000 + i * 777'777});
    }
    const auto ends = [&] {
      const auto network = Make(topology);
      std::vector<double> ends(12);
      for (const Flow& flow : flows) {
        network->Start(flow, [&ends](const FlowResult& r) {
          ends[(r.flow.bytes - 1'000'000) / 777'777] = ToSeconds(r.end);
        });
      }
      Drain(*network);
      return ends;
    };
    const std::vector<double> first = ends();
    std::ranges::shuffle(flows, random);
    const std::vector<double> second = ends();
    for (int i = 0; i < 12; ++i) EXPECT_NEAR(second[i], first[i], 1e-6) << i;
  }
}

// Flows whose waves of starts and ends meet in all ways lose nothing and end.
TEST(FluidNetwork, ManyFlowsOfAllKindsEnd) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 20; ++trial) {
    const int hosts = 2 + static_cast<int>(random() % 8);
    Topology topology = Star(hosts, {.down_bps = 30e6, .up_bps = 20e6, .rtt = 30ms});
    for (Host& host : topology.hosts) {
      if (random() % 3 == 0) host.link.conditions.outages = {{1s, 500ms, 3s}};
      if (random() % 3 == 0) host.link.conditions.cross_traffic = {{5e6, 200ms, 200ms}};
      if (random() % 3 == 0) host.link.conditions.rtt_steps = {{2s, 50ms}, {4s, 0ms}};
      if (random() % 3 == 0) host.link.loss = 0.01;
    }
    const auto network = MakeFluidNetwork(topology, {.seed = random()});
    std::int64_t started = 0, ended = 0;
    for (int step = 0; step < 100; ++step) {
      const int from = static_cast<int>(random() % hosts);
      const FlowId id = network->Start(
          {.from = from,
           .to = static_cast<int>((from + 1 + random() % (hosts - 1)) % hosts),
           .bytes = static_cast<std::int64_t>(random() % 3 ? random() % 3'000'000 : 0),
           .streams = 1 + static_cast<int>(random() % 4),
           .traffic_class = random() % 4 ? TrafficClass::kBulk : TrafficClass::kControl},
          [&](const FlowResult& r) {
            ++ended;
            EXPECT_LE(r.delivered_bytes, r.flow.bytes);
            EXPECT_GE(r.delivered_bytes, 0);
            EXPECT_TRUE(r.outcome != FlowOutcome::kDone || r.delivered_bytes == r.flow.bytes);
          });
      ++started;
      if (random() % 10 == 0) network->Cancel(id - random() % 3);
      if (random() % 2) {
        const Time target = network->Now() + Time(random() % 200'000'000);
        const auto next = network->NextEvent();
        ASSERT_TRUE(next);
        EXPECT_GE(*next, network->Now());
        network->AdvanceTo(target);
      }
    }
    Drain(*network);
    EXPECT_EQ(ended, started);
    EXPECT_LT(network->Now(), 10min);
  }
}

}  // namespace
}  // namespace spes::sim
