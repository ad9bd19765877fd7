// Rounds through a coordinator at the fluid level: what a flow costs, and how that grows with their
// number.
#include <benchmark/benchmark.h>

#include <cmath>
#include <memory>
#include <random>
#include <string>

#include "sim/event_loop.h"
#include "sim/fluid/fluid_network.h"

namespace spes::sim {
namespace {

using namespace std::chrono_literals;

// A coordinator, host 0, and `nodes` nodes of 16 kinds: 20 to 500 Mbps, 20 to 150 ms.
Topology Cluster(int nodes, double coordinator_bps) {
  Topology topology;
  const AccessLink hub{.down_bps = coordinator_bps, .up_bps = coordinator_bps};
  topology.hosts.push_back({.name = "coordinator", .site = 0, .link = hub});
  for (int i = 0; i < nodes; ++i) {
    const int kind = i % 16;
    AccessLink link;
    link.up_bps = 20e6 * std::pow(25.0, kind / 15.0);
    link.down_bps = 20e6 * std::pow(25.0, kind * 7 % 16 / 15.0);
    link.rtt = 20ms + kind * 5 % 16 * 130ms / 15;
    topology.hosts.push_back({.name = "node " + std::to_string(i), .site = 0, .link = link});
  }
  topology.sites = {"here"};
  topology.paths = {{SitePath{.bps = 10e12}}};
  return topology;
}

// Every node sends `up` bytes, beginning within 10 s of the others; when all have arrived, `down`
// bytes go to each.
class Rounds {
 public:
  Rounds(Network& network, int nodes, std::int64_t up, std::int64_t down)
      : network_(network), loop_(&network), nodes_(nodes), up_(up), down_(down) {}

  void Run(int rounds) {
    rounds_ = rounds;
    BeginRound();
    loop_.Run();
  }

 private:
  void BeginRound() {
    left_ = nodes_;
    for (int node = 1; node <= nodes_; ++node) {
      const Time wait(random_() % 10'000'000'000);
      loop_.At(loop_.Now() + wait, [this, node] {
        network_.Start({.from = node, .to = 0, .bytes = up_},
                       [this](const FlowResult&) { OnArrival(); });
      });
    }
  }

  void OnArrival() {
    if (--left_ > 0) return;
    left_ = nodes_;
    for (int node = 1; node <= nodes_; ++node) {
      network_.Start({.from = 0, .to = node, .bytes = down_},
                     [this](const FlowResult&) { OnReturn(); });
    }
  }

  void OnReturn() {
    if (--left_ == 0 && --rounds_ > 0) BeginRound();
  }

  Network& network_;
  EventLoop loop_;
  const int nodes_;
  const std::int64_t up_, down_;
  std::mt19937_64 random_{1};
  int left_ = 0;
  int rounds_ = 0;
};

void RunRounds(benchmark::State& state, int nodes, double coordinator_bps, std::int64_t up,
               std::int64_t down, int rounds) {
  const Topology topology = Cluster(nodes, coordinator_bps);
  double virtual_s = 0;
  for (auto _ : state) {
    const std::unique_ptr<Network> network = MakeFluidNetwork(topology, {});
    for (int node = 1; node <= nodes; ++node) network->Prepare(node, 0, 1);
    Rounds(*network, nodes, up, down).Run(rounds);
    virtual_s = ToSeconds(network->Now());
  }
  state.counters["virtual_s"] = virtual_s;
  state.counters["s_per_flow"] =
      benchmark::Counter(2.0 * nodes * rounds, benchmark::Counter::kIsIterationInvariantRate |
                                                   benchmark::Counter::kInvert);
}

// A round of a model with 2 billion parameters on 16 nodes.
void SixteenNodes(benchmark::State& state) {
  RunRounds(state, 16, 1e9, 1'900'000'000, 8'000'000'000, 1);
}
BENCHMARK(SixteenNodes)->Unit(benchmark::kMillisecond);

// The coordinator's link is full: 1000 nodes share 10 Gbps.
void ThousandNodesHundredRounds(benchmark::State& state) {
  RunRounds(state, 1000, 10e9, 100'000'000, 100'000'000, 100);
}
BENCHMARK(ThousandNodesHundredRounds)->Unit(benchmark::kMillisecond)->Iterations(1);

// The time of n flows, all active at once.
void OneRound(benchmark::State& state) {
  const int nodes = static_cast<int>(state.range(0));
  RunRounds(state, nodes, 10e6 * nodes, 100'000'000, 100'000'000, 1);
  state.SetComplexityN(nodes);
}
BENCHMARK(OneRound)
    ->RangeMultiplier(4)
    ->Range(64, 16384)
    ->Unit(benchmark::kMillisecond)
    ->Complexity(benchmark::oNLogN);

}  // namespace
}  // namespace spes::sim
