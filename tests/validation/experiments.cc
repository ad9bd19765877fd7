#include "tests/validation/experiments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>

#include "sim/tcp_laws.h"

namespace spes::validation {
namespace {

using sim::AccessLink;
using sim::FromSeconds;
using sim::Network;
using sim::Time;
using sim::Topology;
using sim::ToSeconds;

double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double WireRatio(const sim::TcpConfig& tcp) {
  return static_cast<double>(sim::WireBytes(tcp.segment_bytes)) / tcp.segment_bytes;
}

void Until(Network& network, Time t) {
  while (network.Now() < t) network.AdvanceTo(t);
}

Time Milliseconds(double ms) { return FromSeconds(ms / 1e3); }

}  // namespace

const sim::Level& LevelNamed(const std::string& name) {
  static const std::vector<sim::Level> levels = sim::Levels();
  const auto found = std::ranges::find(levels, name, &sim::Level::name);
  if (found == levels.end()) throw std::invalid_argument("there is no level " + name);
  return *found;
}

Run RunSingleFlow(const sim::Level& level, const SingleFlow& flow) {
  const AccessLink link{.down_bps = flow.mbps * 1e6,
                        .up_bps = flow.mbps * 1e6,
                        .rtt = Milliseconds(flow.rtt_ms / 2),
                        .loss = flow.loss / 2};
  const double cpu = CpuSeconds();
  const std::unique_ptr<Network> network = level.make(sim::Star(2, link), flow.tcp);
  network->Prepare(0, 1, flow.streams);
  Run run;
  run.result =
      sim::Transfer(*network, {.from = 0, .to = 1, .bytes = flow.bytes, .streams = flow.streams});
  run.virtual_s = ToSeconds(run.result.end - run.result.start);
  run.cpu_s = CpuSeconds() - cpu;
  return run;
}

double LosslessLaw(const SingleFlow& flow) {
  const double seconds_per_byte = 8e-6 / flow.mbps * WireRatio(flow.tcp);
  const double segment = flow.tcp.segment_bytes * seconds_per_byte;
  const double rtt = flow.rtt_ms / 1e3, seen = rtt + 3 * segment;
  double window = static_cast<double>(flow.tcp.initial_window) * flow.tcp.segment_bytes;
  double left = static_cast<double>(flow.bytes), time = rtt / 2 + segment + left * seconds_per_byte;
  for (; window < left && window * seconds_per_byte < seen; window *= 2) {
    time += seen - window * seconds_per_byte;
    left -= window;
  }
  return time;
}

double SmoothLaw(const SingleFlow& flow) {
  const double rtt = flow.rtt_ms / 1e3, bdp = flow.mbps * 1e6 / 8 * rtt;
  const double window = static_cast<double>(flow.tcp.initial_window) * flow.tcp.segment_bytes;
  return static_cast<double>(flow.bytes) * 8e-6 / flow.mbps * WireRatio(flow.tcp) +
         rtt * (std::max(0.0, std::log2(bdp / window)) - 0.5);
}

double LossLaw(const SingleFlow& flow) {
  const double rtt = flow.rtt_ms / 1e3;
  double window = sim::RenoWindow(flow.loss);
  if (flow.tcp.congestion == "cubic") {
    // 1.054 is for losses at equal distances (results/network_validation/cubic_constant.py).
    constexpr double kRandomLosses = 1.190 / 1.045;
    window = std::max(window, kRandomLosses * sim::CubicWindow(flow.loss, rtt));
  }
  const double capacity = flow.mbps / WireRatio(flow.tcp);
  return std::min(capacity, window * flow.tcp.segment_bytes * 8 / rtt / 1e6);
}

FanRun RunFan(const sim::Level& level, bool fan_in, std::int64_t bytes, std::uint64_t seed) {
  constexpr int kFlows = 16;
  std::mt19937_64 random(seed);
  const auto uniform = [&random] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  Topology topology =
      sim::Star(kFlows + 1, {.down_bps = 1e9, .up_bps = 1e9, .rtt = Milliseconds(1)});
  std::vector<std::pair<Time, int>> starts;
  for (int i = 0; i < kFlows; ++i) {
    const double bps = 20e6 * std::pow(500.0 / 20, (i + uniform()) / kFlows);
    const Time rtt = Milliseconds(19 + 130 * uniform());
    topology.hosts[i].link = {.down_bps = bps, .up_bps = bps, .rtt = rtt};
    starts.emplace_back(FromSeconds(uniform() / 2), i);
  }
  std::ranges::sort(starts);
  FanRun run;
  const double cpu = CpuSeconds();
  const std::unique_ptr<Network> network = level.make(topology, {});
  sim::PrepareAll(*network, topology);
  std::vector<double> ends;
  for (const auto& [at, i] : starts) {
    Until(*network, at);
    network->Start({.from = fan_in ? i : kFlows, .to = fan_in ? kFlows : i, .bytes = bytes},
                   [&ends](const sim::FlowResult& r) { ends.push_back(ToSeconds(r.end)); });
  }
  while (ends.size() < kFlows) network->AdvanceTo(sim::kNever);
  std::ranges::sort(ends);
  const auto quantile = [&ends](double q) {
    const double place = q * (kFlows - 1);
    const auto below = static_cast<std::size_t>(place);
    return ends[below] + (place - std::floor(place)) *
                             (ends[std::min<std::size_t>(kFlows - 1, below + 1)] - ends[below]);
  };
  run = {ends.back(), quantile(0.5), quantile(0.9), CpuSeconds() - cpu};
  return run;
}

Run RunSpesRound(const sim::Level& level, double scale) {
  struct Group {
    int count;
    double down, up;  // Mbps
    double rtt_ms;    // to the coordinator
    int place;
  };
  // As scenarios/16node_internet.yaml, without its random losses.
  constexpr Group kGroups[] = {{4, 500, 500, 30, 0}, {4, 227, 26.6, 83, 0}, {2, 227, 26.6, 143, 0},
                               {3, 100, 20, 103, 0}, {2, 500, 500, 206, 0}, {1, 111, 9.7, 53, 0}};
  Topology topology;
  for (const Group& group : kGroups) {
    for (int i = 0; i < group.count; ++i) {
      topology.hosts.push_back({.name = fmt::format("node {}", topology.hosts.size()),
                                .site = 0,
                                .link = {.down_bps = group.down * 1e6,
                                         .up_bps = group.up * 1e6,
                                         .rtt = Milliseconds(group.rtt_ms - 1)}});
    }
  }
  const int nodes = static_cast<int>(topology.hosts.size());
  topology.hosts.push_back({.name = "coordinator",
                            .site = 0,
                            .link = {.down_bps = 17e9, .up_bps = 17e9, .rtt = Milliseconds(1)}});
  topology.sites = {"here"};
  topology.paths = {{sim::SitePath{}}};
  const double cpu = CpuSeconds();
  const std::unique_ptr<Network> network = level.make(topology, {});
  sim::PrepareAll(*network, topology);
  for (const bool up : {true, false}) {
    int left = nodes;
    for (int n = 0; n < nodes; ++n) {
      network->Start({.from = up ? n : nodes,
                      .to = up ? nodes : n,
                      .bytes = std::llround((up ? 1.9e9 : 8e9) * scale)},
                     [&left](const sim::FlowResult&) { --left; });
    }
    while (left > 0) network->AdvanceTo(sim::kNever);
  }
  return {ToSeconds(network->Now()), CpuSeconds() - cpu, {}};
}

Run RunManyNodes(const sim::Level& level, int nodes, int rounds) {
  Topology topology;
  for (int n = 0; n < nodes; ++n) {
    const int group = n % 16;
    topology.hosts.push_back({.name = fmt::format("node {}", n),
                              .site = 0,
                              .link = {.down_bps = 100e6 + 25e6 * group,
                                       .up_bps = 20e6 + 10e6 * group,
                                       .rtt = Milliseconds(20 + 8 * group)}});
  }
  topology.hosts.push_back({.name = "coordinator",
                            .site = 0,
                            .link = {.down_bps = 25e9, .up_bps = 25e9, .rtt = Milliseconds(1)}});
  topology.sites = {"here"};
  topology.paths = {{sim::SitePath{.bps = 400e9}}};
  std::mt19937_64 random(1);
  const double cpu = CpuSeconds();
  const std::unique_ptr<Network> network = level.make(topology, {});
  for (int n = 0; n < nodes; ++n) {
    network->Prepare(n, nodes, 1);
    network->Prepare(nodes, n, 1);
  }
  for (int round = 0; round < rounds; ++round) {
    int left = nodes;
    const auto done = [&left](const sim::FlowResult&) { --left; };
    std::vector<std::pair<Time, int>> starts;
    for (int n = 0; n < nodes; ++n) {
      const double jitter = static_cast<double>(random() >> 11) * 0x1p-53;
      starts.emplace_back(network->Now() + FromSeconds(60 + 10 * jitter), n);
    }
    std::ranges::sort(starts);
    for (const auto& [at, n] : starts) {
      Until(*network, at);
      network->Start({.from = n, .to = nodes, .bytes = 10'000'000}, done);
    }
    while (left > 0) network->AdvanceTo(sim::kNever);
    left = nodes;
    for (int n = 0; n < nodes; ++n) {
      network->Start({.from = nodes, .to = n, .bytes = 40'000'000}, done);
    }
    while (left > 0) network->AdvanceTo(sim::kNever);
  }
  return {ToSeconds(network->Now()), CpuSeconds() - cpu, {}};
}

}  // namespace spes::validation
