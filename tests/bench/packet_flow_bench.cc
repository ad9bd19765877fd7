// Flows through the packet-level network: CPU seconds for each 10 MB of payload.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "sim/ns3/packet_network.h"

namespace spes::sim {
namespace {

using namespace std::chrono_literals;

// `hosts` hosts at one site; the first has 1 Gbps and no delay of its own.
Topology Star(int hosts) {
  Topology topology;
  for (int i = 0; i < hosts; ++i) {
    topology.hosts.push_back({.name = "host" + std::to_string(i), .site = 0, .link = {}});
  }
  topology.sites = {"here"};
  topology.paths = {{SitePath{}}};
  return topology;
}

// Sends `bytes` from the first host to every other.
void FanOut(benchmark::State& state, const Topology& topology, std::int64_t bytes) {
  const int receivers = static_cast<int>(topology.hosts.size()) - 1;
  for (auto _ : state) {
    const std::unique_ptr<Network> network = MakePacketNetwork(topology, {});
    for (int to = 1; to <= receivers; ++to) {
      network->Prepare(0, to, 1);
      network->Start({.from = 0, .to = to, .bytes = bytes}, {});
    }
    while (network->NextEvent()) network->AdvanceTo(kNever);
  }
  state.counters["cpu_s_per_10MB"] = benchmark::Counter(
      static_cast<double>(receivers * bytes) / 1e7,
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void OneFlow(benchmark::State& state) {
  Topology topology = Star(2);
  topology.hosts[1].link = {.down_bps = 50e6, .up_bps = 50e6, .rtt = 80ms};
  FanOut(state, topology, 20'000'000);
}
BENCHMARK(OneFlow)->Unit(benchmark::kMillisecond);

// A long, fat pipe, where a window is thousands of segments.
void OneFlowAt1Gbps(benchmark::State& state) {
  Topology topology = Star(2);
  topology.hosts[1].link.rtt = 100ms;
  FanOut(state, topology, 100'000'000);
}
BENCHMARK(OneFlowAt1Gbps)->Unit(benchmark::kMillisecond);

// A round's download: 16 nodes at 20 to 200 Mbps and 10 to 150 ms.
void SixteenNodes(benchmark::State& state) {
  Topology topology = Star(17);
  for (int i = 1; i <= 16; ++i) {
    AccessLink& link = topology.hosts[i].link;
    link.down_bps = link.up_bps = 20e6 + 12e6 * (i * 7 % 16);
    link.rtt = 10ms + i * 5 % 16 * 140ms / 15;
    link.loss = static_cast<double>(state.range(0)) * 1e-4;
  }
  FanOut(state, topology, 5'000'000);
}
BENCHMARK(SixteenNodes)
    ->ArgName("loss_e-4")
    ->Arg(0)
    ->Arg(1)
    ->Arg(10)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace spes::sim
