#include "sim/link_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "tests/sim/two_sites.h"

namespace spes::sim {
namespace {

using namespace std::chrono_literals;

std::vector<std::string> RouteNames(const LinkGraph& graph, int a, int b) {
  std::vector<std::string> names;
  for (const int link : graph.Route(a, b)) names.push_back(graph.links()[link].name);
  return names;
}

const Link& Named(const LinkGraph& graph, const std::string& name) {
  for (const Link& link : graph.links()) {
    if (link.name == name) return link;
  }
  throw std::out_of_range(name);
}

TEST(LinkGraph, RoundTripsAddUp) {
  const LinkGraph graph(TwoSites(), {});
  EXPECT_EQ(graph.Rtt(0, 1), 16ms);
  EXPECT_EQ(graph.Rtt(0, 2), 90ms);
  EXPECT_EQ(graph.Rtt(2, 0), 90ms);
  EXPECT_EQ(Named(graph, "b up").longest_rtt, 84ms);
  EXPECT_EQ(Named(graph, "a down").longest_rtt, 90ms);
  EXPECT_EQ(Named(graph, "within east").longest_rtt, 16ms);
  EXPECT_EQ(Named(graph, "within west").longest_rtt, 0ms);
  EXPECT_EQ(Named(graph, "west → east").longest_rtt, 90ms);
}

TEST(LinkGraph, TheSlowestLinkOfEachDirectionCounts) {
  const LinkGraph graph(TwoSites(), {});
  EXPECT_EQ(graph.BottleneckBps(0, 1), 20e6);
  EXPECT_EQ(graph.BottleneckBps(1, 0), 200e6);
  EXPECT_EQ(graph.BottleneckBps(2, 1), 0.5e9);
  EXPECT_EQ(graph.BottleneckBps(1, 2), 100e6);
}

TEST(LinkGraph, LossesCombine) {
  const LinkGraph graph(TwoSites(), {});
  EXPECT_DOUBLE_EQ(graph.PathLoss(1, 2), 1 - 0.9 * 0.99);
}

TEST(LinkGraph, QueuesHoldTheirShareOfTheLongestProduct) {
  Topology topology = TwoSites();
  topology.hosts[2].link.queue_bdp = 2;
  const LinkGraph graph(topology, {});
  EXPECT_DOUBLE_EQ(Named(graph, "c down").queue_bytes, 2 * 100e6 / 8 * 0.09);
  EXPECT_DOUBLE_EQ(Named(graph, "within west").queue_bytes, 20 * 1502) << "two initial windows";
}

TEST(LinkGraph, RoutesPassTheLinksOfTheSites) {
  Topology topology = TwoSites();
  topology.uplinks = {AccessLink{.down_bps = 3e8, .up_bps = 1e8, .rtt = 4ms}, std::nullopt};
  const LinkGraph graph(topology, {});
  using testing::ElementsAre;
  EXPECT_THAT(RouteNames(graph, 0, 2), ElementsAre("a up", "east up", "east → west", "c down"));
  EXPECT_THAT(RouteNames(graph, 2, 0), ElementsAre("c up", "west → east", "east down", "a down"));
  EXPECT_THAT(RouteNames(graph, 0, 1), ElementsAre("a up", "within east", "b down"));
  EXPECT_EQ(graph.Rtt(0, 2), 94ms);
}

// East and west meet only at a junction, and the long way round is shorter in time.
Topology Graph() {
  Topology topology = TwoSites();
  topology.sites = {"east", "west", "junction"};
  topology.paths.assign(3, std::vector<std::optional<SitePath>>(3));
  const auto line = [&](int a, int b, Time rtt) {
    topology.paths[a][b] = topology.paths[b][a] = SitePath{.rtt = rtt, .bps = 1e9};
  };
  line(0, 1, 60ms);
  line(0, 2, 20ms);
  line(1, 2, 30ms);
  topology.routing = Routing::kShortest;
  return topology;
}

TEST(LinkGraph, TheShortestRouteMayPassOtherSites) {
  Topology topology = Graph();
  using testing::ElementsAre;
  const LinkGraph graph(topology, {});
  EXPECT_THAT(RouteNames(graph, 0, 2),
              ElementsAre("a up", "east → junction", "junction → west", "c down"));
  EXPECT_EQ(graph.Rtt(0, 2), 80ms);
  EXPECT_THAT(RouteNames(graph, 0, 1), ElementsAre("a up", "b down"));
  topology.routing = Routing::kDirect;
  EXPECT_EQ(LinkGraph(topology, {}).Rtt(0, 2), 90ms) << "the line between them";
}

TEST(LinkGraph, AHoleIsNamed) {
  Topology topology = Graph();
  const auto refused = [&](const std::string& text) {
    try {
      LinkGraph(topology, {});
      ADD_FAILURE() << "accepted: " << text;
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(text));
    }
  };
  topology.paths[0][1].reset(), topology.paths[1][0].reset();
  EXPECT_NO_THROW(LinkGraph(topology, {}));
  topology.routing = Routing::kDirect;
  refused("no path between sites 'east' and 'west'; give one");
  topology.routing = Routing::kShortest;
  topology.paths[2][1].reset(), topology.paths[1][2].reset();
  refused("no path between sites 'east' and 'west', not even");
}

TEST(LinkGraph, DelaysChangeInSteps) {
  Topology topology = TwoSites();
  topology.hosts[0].link.conditions.rtt_steps = {{.at = 10s, .extra = 20ms},
                                                 {.at = 20s, .extra = 0ms}};
  const LinkGraph graph(topology, {});
  const Link& up = Named(graph, "a up");
  EXPECT_EQ(up.DelayAt(0s), 5ms);
  EXPECT_EQ(up.DelayAt(10s), 15ms);
  EXPECT_EQ(up.DelayAt(20s), 5ms);
  EXPECT_EQ(up.NextDelayChange(0s), 10s);
  EXPECT_EQ(up.NextDelayChange(10s), 20s);
  EXPECT_EQ(up.NextDelayChange(20s), kNever);
  EXPECT_EQ(up.LongestDelayFrom(0s), 15ms);
  EXPECT_EQ(up.LongestDelayFrom(15s), 15ms);
  EXPECT_EQ(up.LongestDelayFrom(20s), 5ms);
  EXPECT_EQ(graph.Rtt(0, 2, 10s), 110ms);
  EXPECT_EQ(graph.OneWay(0, 2, 10s), 55ms);
  EXPECT_EQ(graph.LongestRttFrom(0, 2, 0s), 110ms);
  EXPECT_EQ(graph.LongestRttFrom(0, 2, 20s), 90ms);
}

}  // namespace
}  // namespace spes::sim
