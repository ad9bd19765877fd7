// The fluid level held against the packet level.
#ifdef SPES_NS3
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "sim/fluid/fluid_network.h"
#include "sim/ns3/packet_network.h"
#include "tests/sim/levels.h"

namespace spes::sim {
namespace {

using namespace std::chrono_literals;

std::unique_ptr<Network> Make(bool packets, const Topology& topology, const TcpConfig& tcp) {
  auto network = packets ? MakePacketNetwork(topology, tcp) : MakeFluidNetwork(topology, tcp);
  PrepareAll(*network, topology);
  return network;
}

Topology Line(double bps, Time rtt) {
  Topology topology = Star(2, {.down_bps = 1e9, .up_bps = 1e9, .rtt = rtt / 2});
  topology.hosts[1].link.down_bps = bps;
  return topology;
}

TEST(FluidAgainstPackets, ASingleTransfer) {
  struct Setting {
    double bps;
    Time rtt;
    std::int64_t bytes;
  };
  for (const auto& [bps, rtt, bytes] :
       {Setting{10e6, 10ms, 1'000'000}, Setting{10e6, 150ms, 1'000'000},
        Setting{100e6, 50ms, 1'000'000}, Setting{1e9, 150ms, 1'000'000},
        Setting{100e6, 10ms, 20'000'000}, Setting{100e6, 150ms, 20'000'000},
        Setting{1e9, 50ms, 20'000'000}}) {
    for (const int streams : {1, 4}) {
      const Flow flow{.from = 0, .to = 1, .bytes = bytes, .streams = streams};
      const double packet = ToSeconds(Transfer(*Make(true, Line(bps, rtt), {}), flow).end);
      const double fluid = ToSeconds(Transfer(*Make(false, Line(bps, rtt), {}), flow).end);
      // The last of several streams, which do not share evenly, ends later with packets.
      EXPECT_NEAR(fluid / packet, 1, streams == 1 ? 0.05 : 0.25)
          << bps << " " << ToSeconds(rtt) << " " << bytes << " " << streams;
    }
  }
}

// Mean over seeds of the time that a transfer takes under random loss.
double Seconds(bool packets, const Topology& topology, const std::string& congestion,
               std::int64_t bytes, int seeds) {
  double sum = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    const auto network =
        Make(packets, topology, {.congestion = congestion, .seed = static_cast<unsigned>(seed)});
    sum += ToSeconds(Transfer(*network, {.from = 0, .to = 1, .bytes = bytes}).end);
  }
  return sum / seeds;
}

// About 40 losses in each setting.
TEST(FluidAgainstPackets, RandomLoss) {
  for (const std::string congestion : {"cubic", "reno"}) {
    for (const Time rtt : {20ms, 100ms}) {
      Topology topology = Line(200e6, rtt);
      topology.hosts[1].link.loss = 1e-3;
      const double packet = Seconds(true, topology, congestion, 30'000'000, 2);
      const double fluid = Seconds(false, topology, congestion, 30'000'000, 1);
      EXPECT_NEAR(fluid / packet, 1, 0.15) << congestion << " " << ToSeconds(rtt);
    }
  }
}

struct Summary {
  double last, median, late;  // s; `late`: 90th percentile
};

Summary Summarize(std::vector<double> ends) {
  std::ranges::sort(ends);
  const auto at = [&ends](double part) {
    const double place = part * static_cast<double>(ends.size() - 1);
    const auto i = static_cast<std::size_t>(place);
    const double next = ends[std::min(i + 1, ends.size() - 1)];
    return ends[i] + (place - static_cast<double>(i)) * (next - ends[i]);
  };
  return {ends.back(), at(0.5), at(0.9)};
}

// Sixteen transfers at once between a host and others with unequal links: to it, or from it.
Summary Fan(bool packets, bool in, const std::string& congestion, unsigned seed) {
  std::mt19937 random(seed);
  const auto uniform = [&random] { return random() / 4294967296.0; };
  Topology topology = Star(17, {.down_bps = 150e6, .up_bps = 150e6});
  for (int i = 1; i <= 16; ++i) {
    AccessLink& link = topology.hosts[i].link;
    link.up_bps = 20e6 * std::pow(25.0, uniform());
    link.down_bps = 20e6 * std::pow(25.0, uniform());
    link.rtt = FromSeconds(0.020 + 0.130 * uniform());
  }
  const auto network = Make(packets, topology, {.congestion = congestion, .seed = seed});
  std::vector<double> ends;
  for (int i = 1; i <= 16; ++i) {
    network->Start({.from = in ? i : 0, .to = in ? 0 : i, .bytes = 5'000'000},
                   [&](const FlowResult& r) { ends.push_back(ToSeconds(r.end)); });
  }
  while (network->NextEvent()) network->AdvanceTo(kNever);
  return Summarize(ends);
}

TEST(FluidAgainstPackets, SixteenTransfersInAndOut) {
  for (const std::string congestion : {"cubic", "reno"}) {
    for (const bool in : {true, false}) {
      if (congestion == "reno" && !in) continue;  // takes too long
      double last = 0, median = 0, late = 0;
      constexpr unsigned kSeeds = 3;
      for (unsigned seed = 1; seed <= kSeeds; ++seed) {
        const Summary packet = Fan(true, in, congestion, seed);
        const Summary fluid = Fan(false, in, congestion, seed);
        last += fluid.last / packet.last / kSeeds;
        median += fluid.median / packet.median / kSeeds;
        late += fluid.late / packet.late / kSeeds;
      }
      EXPECT_NEAR(last, 1, 0.2) << congestion << in;
      EXPECT_NEAR(median, 1, 0.2) << congestion << in;
      EXPECT_NEAR(late, 1, 0.2) << congestion << in;
    }
  }
}

// What is sent is the same; the last acknowledgements may differ.
TEST(FluidAgainstPackets, LinksCarryTheSame) {
  std::vector<LinkUsage> usage[2];
  for (const bool packets : {false, true}) {
    const auto network = Make(packets, Line(100e6, 40ms), {});
    Transfer(*network, {.from = 0, .to = 1, .bytes = 20'000'000});
    network->AdvanceTo(network->Now() + 1s);
    usage[packets] = network->Usage();
  }
  ASSERT_EQ(usage[0].size(), usage[1].size());
  for (std::size_t i = 0; i < usage[0].size(); ++i) {
    EXPECT_NEAR(static_cast<double>(usage[0][i].wire_bytes),
                static_cast<double>(usage[1][i].wire_bytes),
                0.01 * static_cast<double>(usage[1][i].wire_bytes))
        << i;
  }
}

TEST(FluidAgainstPackets, AnOutage) {
  Topology topology = Line(50e6, 40ms);
  topology.hosts[1].link.conditions.outages = {{.at = 2s, .duration = 3s}};
  const double packet = Seconds(true, topology, "cubic", 30'000'000, 1);
  const double fluid = Seconds(false, topology, "cubic", 30'000'000, 1);
  EXPECT_NEAR(fluid / packet, 1, 0.15);
}

TEST(FluidAgainstPackets, ACapacityThatChanges) {
  Topology topology = Line(50e6, 40ms);
  topology.hosts[1].link.down_trace = std::make_shared<RateTrace>(
      RateTrace{.steps = {{0s, 50e6}, {1s, 10e6}, {3s, 80e6}}, .period = 4s});
  const double packet = Seconds(true, topology, "cubic", 40'000'000, 1);
  const double fluid = Seconds(false, topology, "cubic", 40'000'000, 1);
  EXPECT_NEAR(fluid / packet, 1, 0.2);
}

}  // namespace
}  // namespace spes::sim
#endif
