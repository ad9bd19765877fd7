// What users of network simulators complain about, at every level. Others of the kind have their
// place elsewhere: a round trip is not a one-way delay, a change of rate has its effect
// (conformance suite), losses in queues are counted (packet level), keys that nobody reads are
// errors (scenarios).
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/sim/levels.h"

namespace spes::sim {
namespace {

using namespace std::chrono_literals;

class Complaints : public testing::TestWithParam<Level> {
 protected:
  std::unique_ptr<Network> Make(const Topology& topology, const TcpConfig& tcp = {}) {
    std::unique_ptr<Network> network = GetParam().make(topology, tcp);
    PrepareAll(*network, topology);
    return network;
  }

  // Seconds until all of the flows have ended.
  double Makespan(const Topology& topology, const std::vector<Flow>& flows) {
    const auto network = Make(topology);
    std::size_t left = flows.size();
    for (const Flow& flow : flows) {
      network->Start(flow, [&left](const FlowResult& r) {
        EXPECT_EQ(r.outcome, FlowOutcome::kDone);
        EXPECT_EQ(r.delivered_bytes, r.flow.bytes);
        --left;
      });
    }
    while (left > 0) network->AdvanceTo(kNever);
    return ToSeconds(network->Now());
  }
};

INSTANTIATE_TEST_SUITE_P(Levels, Complaints, testing::ValuesIn(Levels()), LevelName);

// Two pairs of hosts, 5 MB each, 100 Mbps access: in a star nothing is shared; behind a common link
// of 100 Mbps they take twice as long; over a graph whose only cable has 50 Mbps four times.
TEST_P(Complaints, EveryTopologyGivesItsOwnResult) {
  const AccessLink link{.down_bps = 100e6, .up_bps = 100e6, .rtt = 2ms};
  const std::vector<Flow> flows = {{.from = 0, .to = 2, .bytes = 5'000'000},
                                   {.from = 1, .to = 3, .bytes = 5'000'000}};
  const Topology star = Star(4, link);

  Topology clusters = star;
  clusters.sites = {"a", "b"};
  clusters.hosts[2].site = clusters.hosts[3].site = 1;
  const SitePath wide{.rtt = 2ms, .bps = 10e9};
  clusters.paths = {{wide, wide}, {wide, wide}};
  clusters.uplinks = {link, std::nullopt};

  Topology graph = clusters;
  graph.uplinks.clear();
  graph.routing = Routing::kShortest;
  graph.sites = {"a", "b", "east", "west"};
  graph.paths.assign(4, std::vector<std::optional<SitePath>>(4));
  const auto line = [&graph](int x, int y, double bps) {
    graph.paths[x][y] = graph.paths[y][x] = SitePath{.rtt = 1ms, .bps = bps};
  };
  line(0, 2, 10e9);
  line(2, 3, 50e6);
  line(3, 1, 10e9);

  const double alone = 5e6 * 8 / 100e6;
  EXPECT_NEAR(Makespan(star, flows), alone, 0.15 * alone);
  EXPECT_NEAR(Makespan(clusters, flows), 2 * alone, 0.5 * alone);
  EXPECT_NEAR(Makespan(graph, flows), 4 * alone, 0.9 * alone);
}

TEST_P(Complaints, ErrorsDoNotHang) {
  for (const double burst : {1, 8}) {
    const AccessLink link{
        .down_bps = 20e6, .up_bps = 20e6, .rtt = 10ms, .loss = 0.03, .loss_burst = burst};
    EXPECT_GT(Makespan(Star(2, link), {{.from = 0, .to = 1, .bytes = 300'000}}), 0.1);
  }
}

TEST_P(Complaints, AConstantTraceIsAConstant) {
  Topology topology = Star(2, {.down_bps = 20e6, .up_bps = 20e6, .rtt = 10ms});
  const std::vector<Flow> flows = {{.from = 0, .to = 1, .bytes = 1'000'000}};
  const double seconds = Makespan(topology, flows);
  topology.hosts[0].link.up_trace = std::make_shared<const RateTrace>(RateTrace{{{0s, 20e6}}, 1s});
  EXPECT_DOUBLE_EQ(Makespan(topology, flows), seconds);
}

TEST_P(Complaints, ALinkThatOthersFillStallsTheFlow) {
  Topology topology = Star(2, {.down_bps = 100e6, .up_bps = 100e6, .rtt = 10ms});
  topology.hosts[0].link.conditions = {.outages = {{.at = 0s, .duration = 2s, .every = 10s}},
                                       .cross_traffic = {{.bps = 200e6}}};
  const auto network = Make(topology, {.stall_timeout = 30s});
  const FlowResult result = Transfer(*network, {.from = 0, .to = 1, .bytes = 1'000'000});
  EXPECT_EQ(result.outcome, FlowOutcome::kStalled);
  EXPECT_EQ(result.delivered_bytes, 0);
}

TEST_P(Complaints, ABurstDoesNotCrash) {
  const AccessLink link{.down_bps = 100e6, .up_bps = 100e6, .rtt = 10ms};
  const std::vector<Flow> flows(400, {.from = 1, .to = 0, .bytes = 20'000});
  EXPECT_GT(Makespan(Star(2, link), flows), 400 * 20e3 * 8 / 100e6);
}

TEST_P(Complaints, WireBytesAreMoreThanPayload) {
  if (!GetParam().packets) GTEST_SKIP() << "the ideal level has no headers";
  const auto network = Make(Star(2, {.down_bps = 20e6, .up_bps = 20e6, .rtt = 10ms, .loss = 0.01}));
  const FlowResult result = Transfer(*network, {.from = 0, .to = 1, .bytes = 1'448'000});
  EXPECT_GE(result.wire_bytes, 1'502'000);
  EXPECT_GT(result.retransmitted_bytes, 0);
  EXPECT_GT(result.dropped_packets, 0);
}

TEST_P(Complaints, HugeTransfersDoNotOverflow) {
  const std::string& level = GetParam().name;
  if (level == "packet" || level == "coarse") GTEST_SKIP() << "too slow; 5 GB are sent elsewhere";
  const AccessLink link{.down_bps = 100e6, .up_bps = 100e6, .rtt = 10ms};
  for (const std::int64_t bytes : {8'000'000'000, 100'000'000'000}) {
    const double seconds = static_cast<double>(bytes) * 8 / 100e6;
    EXPECT_NEAR(Makespan(Star(2, link), {{.from = 0, .to = 1, .bytes = bytes}}), seconds,
                0.05 * seconds);
  }
}

}  // namespace
}  // namespace spes::sim
