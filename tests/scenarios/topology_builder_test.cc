#include "scenarios/topology_builder.h"

#include <fmt/format.h>

#include <utility>

#include "scenarios/path_matrix.h"
#include "sim/link_graph.h"
#include "tests/scenarios/scenario_testing.h"

namespace spes::scenarios {
namespace {

using std::chrono::milliseconds;

const std::string kRest =
    "model: {experts: 0}\n"
    "data: {domains: [{name: toy, synthetic: true, synthetic_tokens: 1000}]}\n";

TEST(Topology, NodesFirstThenTheCoordinator) {
  const TempFolder folder;
  folder.Write("m.csv",
               "a,b,rtt_ms,gbps\noslo,oslo,1,10\n oslo , rome,40,0.5\nrome,rome,2,10\n"
               "rome,bonn,20,1\nbonn,oslo,30,1\n");
  const std::string file = folder.Write(
      "s.yaml", kRest +
                    "nodes:\n  groups:\n"
                    "    - {count: 2, site: rome, speed: 0.5, link: {up: 10 Mbps, rtt: 6 ms}}\n"
                    "    - {site: oslo, link: {loss: 0.01}}\n"
                    "network:\n  matrix: m.csv\n  path_loss: 0.001\n  path_queue_bdp: 2\n"
                    "  coordinator_site: oslo\n  coordinator_link: {rtt: 2 ms}\n");
  const Scenario s = ReadScenario(file);
  EXPECT_EQ(NodeCount(s), 3);
  EXPECT_EQ(NodeSpeeds(s), (std::vector<double>{0.5, 0.5, 1}));
  const sim::Topology t = BuildTopology(s);
  ASSERT_EQ(t.hosts.size(), 4u);
  EXPECT_EQ(t.sites, (std::vector<std::string>{"rome", "oslo"}));
  EXPECT_EQ(t.hosts[0].name, "node 0");
  EXPECT_EQ(t.hosts[2].name, "node 2");
  EXPECT_EQ(t.hosts[3].name, "coordinator");
  // The matrix gives round trips: 6/2 + 40/2 + 2/2 there, and the same back.
  const sim::LinkGraph graph(t, {});
  EXPECT_EQ(graph.Rtt(0, 3), milliseconds(6 + 40 + 2));
  EXPECT_EQ(graph.Rtt(3, 0), milliseconds(48));
  EXPECT_EQ(graph.Rtt(2, 3), milliseconds(0 + 1 + 2));
  EXPECT_EQ(graph.Rtt(0, 1), milliseconds(6 + 2 + 6));
  EXPECT_EQ(graph.BottleneckBps(0, 3), 10e6);
  EXPECT_EQ(graph.BottleneckBps(3, 0), 0.5e9);
  EXPECT_DOUBLE_EQ(graph.PathLoss(0, 3), 0.001);
  EXPECT_EQ(t.paths[0][1]->queue_bdp, 2);
  // Nobody stands in Bonn, and a scenario that was read has no matrix any more.
  EXPECT_EQ(s.network.paths.size(), 3u);
  EXPECT_EQ(s.network.matrix, "");
  EXPECT_EQ(s.network.path_loss, 0);
}

TEST(Topology, CountAlone) {
  const Scenario s = Parse(kRest + "nodes: {count: 3}\n");
  const sim::Topology t = BuildTopology(s);
  EXPECT_EQ(NodeCount(s), 3);
  EXPECT_EQ(NodeSpeeds(s), (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(t.sites, std::vector<std::string>{"lan"});
  EXPECT_EQ(t.hosts.size(), 4u);
  EXPECT_EQ(sim::LinkGraph(t, {}).BottleneckBps(0, 3), 1e9);
  EXPECT_EQ(t.hosts[3].link.up_bps, 10e9);
}

TEST(Topology, InlinePathsComeBeforeTheMatrix) {
  const TempFolder folder;
  folder.Write("m.csv", "a,b,rtt_ms,gbps\noslo,rome,40,0.5\n");
  const std::string file =
      folder.Write("s.yaml", kRest +
                                 "nodes: {groups: [{site: oslo}]}\n"
                                 "network: {matrix: m.csv, coordinator_site: rome, "
                                 "paths: [{a: rome, b: oslo, rtt: 7 ms, rate: 3 Mbps}]}\n");
  const sim::Topology t = BuildTopology(ReadScenario(file));
  const sim::LinkGraph graph(t, {});
  EXPECT_EQ(graph.Rtt(0, 1), milliseconds(7));
  EXPECT_EQ(graph.BottleneckBps(0, 1), 3e6);
}

TEST(Topology, SitesWithoutANameStandWithTheCoordinator) {
  const Scenario s = Parse(kRest +
                           "nodes: {groups: [{}, {site: rome}]}\n"
                           "network: {paths: [{a: oslo, b: rome}]}\n");
  EXPECT_EQ(s.network.coordinator_site, "oslo");
  EXPECT_EQ(s.nodes.groups[0].site, "oslo");
  const Scenario named = Parse(kRest + "nodes: {groups: [{site: home, count: 2}]}\n");
  EXPECT_EQ(named.network.coordinator_site, "home");
}

TEST(Matrix, MissingPairsMatterWhereSomebodyStands) {
  const TempFolder folder;
  folder.Write("m.csv", "a,b,rtt_ms,gbps\noslo,rome,40,0.5\nrome,bonn,40,0.5\n");
  const std::string text = kRest + "network: {matrix: m.csv, coordinator_site: oslo}\n";
  const std::string good = folder.Write("g.yaml", text + "nodes: {groups: [{site: rome}]}\n");
  EXPECT_EQ(ErrorOf([&] { ReadScenario(good); }), "no error");
  const std::string bad = folder.Write("b.yaml", text + "nodes: {groups: [{site: bonn}]}\n");
  EXPECT_EQ(ErrorOf([&] { ReadScenario(bad); }),
            bad +
                ":3: network: there is no path between sites 'bonn' and 'oslo'; give one, or let "
                "traffic pass through other sites with routing: shortest");
}

TEST(Matrix, ARateNextToNothingIsRefused) {
  const TempFolder folder;
  folder.Write("m.csv", "a,b,rtt_ms,gbps\noslo,rome,20,1e-12\n");
  const std::string bad =
      folder.Write("s.yaml", kRest +
                                 "network: {matrix: m.csv, coordinator_site: oslo}\n"
                                 "nodes: {groups: [{site: rome}]}\n");
  EXPECT_EQ(ErrorOf([&] { ReadScenario(bad); }),
            bad +
                ":3: network: the path between sites 'rome' and 'oslo' has a rate of 0.001 bit/s: "
                "a rate must be at least 1 bit/s and finite");
}

// oslo –10– hub –20– rome, and a long way directly.
const std::string kGraph =
    kRest +
    "nodes: {groups: [{count: 2, site: oslo}]}\n"
    "network:\n  routing: shortest\n  coordinator_site: rome\n  paths:\n"
    "    - {a: oslo, b: hub, rtt: 10 ms, rate: 1 Gbps}\n"
    "    - {a: rome, b: hub, rtt: 20 ms, rate: 300 Mbps, rate_back: 200 Mbps}\n"
    "    - {a: oslo, b: rome, rtt: 90 ms, rate: 5 Gbps}\n";

TEST(Topology, AGraphHasSitesWithoutHosts) {
  const sim::Topology t = BuildTopology(Parse(kGraph));
  EXPECT_EQ(t.sites, (std::vector<std::string>{"oslo", "rome", "hub"}));
  EXPECT_EQ(t.routing, sim::Routing::kShortest);
  EXPECT_TRUE(t.paths[0][0]);
  EXPECT_FALSE(t.paths[2][2]) << "nobody stands there";
  const sim::LinkGraph g(t, {});
  EXPECT_EQ(g.Rtt(0, 2), milliseconds(30));
  EXPECT_EQ(g.BottleneckBps(0, 2), 200e6) << "from the hub to rome is the way back";
  EXPECT_EQ(g.BottleneckBps(2, 0), 300e6);
}

TEST(Topology, DirectTrafficLeavesOtherSitesAside) {
  const sim::Topology t = BuildTopology(Parse(kGraph, {"network.routing=direct"}));
  EXPECT_EQ(t.sites, (std::vector<std::string>{"oslo", "rome"}));
  EXPECT_EQ(sim::LinkGraph(t, {}).Rtt(0, 2), milliseconds(90));
}

TEST(Topology, MatricesKeepJunctionsForShortestPaths) {
  const TempFolder folder;
  folder.Write("l.csv", ",oslo,hub,rome\noslo,0,10,-\nhub,10,0,20\nrome,-,20,\n");
  const std::string text = kRest +
                           "nodes: {groups: [{site: oslo}]}\n"
                           "network: {latency_matrix: l.csv, coordinator_site: rome, path_rate: 70 "
                           "Mbps, path_loss: 0.1, path_loss_burst: 3, path_queue_bdp: 2";
  const std::string direct = folder.Write("d.yaml", text + "}\n");
  EXPECT_EQ(ErrorOf([&] { ReadScenario(direct); }),
            direct +
                ":4: network: there is no path between sites 'oslo' and 'rome'; give one, or let "
                "traffic pass through other sites with routing: shortest");
  const Scenario s = ReadScenario(folder.Write("s.yaml", text + ", routing: shortest}\n"));
  EXPECT_EQ(s.network.latency_matrix, "");
  EXPECT_EQ(s.network.path_bps, NetworkSection{}.path_bps);
  ASSERT_EQ(s.network.paths.size(), 2u);
  EXPECT_EQ(s.network.paths[0].loss, 0.1);
  EXPECT_EQ(s.network.paths[0].loss_burst, 3);
  EXPECT_EQ(s.network.paths[0].queue_bdp, 2);
  const sim::LinkGraph g(BuildTopology(s), {});
  EXPECT_EQ(g.Rtt(0, 1), milliseconds(30));
  EXPECT_EQ(g.BottleneckBps(0, 1), 70e6);
}

TEST(Topology, ClustersBehindSharedLinks) {
  const Scenario s = Parse(
      kRest +
      "nodes: {groups: [{count: 2, site: oslo}, {site: rome}]}\n"
      "network:\n  coordinator_site: rome\n  paths: [{a: oslo, b: rome, rtt: 40 ms, rate: 10 "
      "Gbps}]\n"
      "  sites:\n    - {name: oslo, link: {down: 300 Mbps, up: 50 Mbps, rtt: 2 ms, loss: 0.01}}\n");
  const sim::Topology t = BuildTopology(s);
  ASSERT_EQ(t.uplinks.size(), 2u);
  EXPECT_FALSE(t.uplinks[1]);
  const sim::LinkGraph g(t, {});
  EXPECT_EQ(g.BottleneckBps(0, 2), 50e6);
  EXPECT_EQ(g.BottleneckBps(2, 0), 300e6);
  EXPECT_EQ(g.BottleneckBps(0, 1), 1e9) << "neighbours do not leave their site";
  EXPECT_EQ(g.Rtt(0, 2), milliseconds(42));
  EXPECT_NEAR(g.PathLoss(0, 2), 0.01, 1e-12);
}

TEST(Topology, TracesAndConditionsReachTheLinks) {
  const TempFolder folder;
  folder.Write("t.trace", "500\n1000\n");  // 24 kbit/s
  folder.Write("u.trace", "1\n");          // 12 Mbit/s
  const Scenario s = ReadScenario(folder.Write(
      "s.yaml",
      kRest +
          "nodes:\n  groups:\n"
          "    - {count: 2, site: oslo, link: {down_trace: t.trace, up: 5 Mbps, loss_burst: 4,\n"
          "       conditions: {diurnal: {depth: 0.5, period: 2 h, busiest: 1 h}}}}\n"
          "network:\n  trace_interval: 500 ms\n  coordinator_site: rome\n"
          "  coordinator_link: {up_trace: u.trace, conditions: {rtt_steps: [{at: 1 min, extra: 30 "
          "ms}]}}\n"
          "  paths:\n    - {a: rome, b: oslo, rate: 1 Gbps, trace_back: u.trace, conditions:\n"
          "       {outages: [{at: 1 h, duration: 2 min, every: 1 d}],\n"
          "        cross_traffic: [{rate: 100 Mbps, on: 5 s, off: 10 s}, {rate: 1 Mbps}]}}\n"));
  const sim::Topology t = BuildTopology(s);
  ASSERT_TRUE(t.hosts[0].link.down_trace);
  EXPECT_EQ(t.hosts[2].link.up_trace, t.paths[0][1]->trace) << "a file is read once";
  EXPECT_EQ(t.hosts[0].link.down_trace->period, milliseconds(1000));
  EXPECT_EQ(t.hosts[0].link.down_trace->steps.size(), 1u);
  EXPECT_FALSE(t.hosts[0].link.up_trace);
  EXPECT_EQ(t.hosts[0].link.loss_burst, 4);
  EXPECT_EQ(t.hosts[0].link.conditions.diurnal.depth, 0.5);
  EXPECT_EQ(t.hosts[0].link.conditions.diurnal.period, std::chrono::hours(2));
  EXPECT_EQ(t.hosts[0].link.conditions.diurnal.busiest, std::chrono::hours(1));
  ASSERT_TRUE(t.hosts[2].link.up_trace);
  EXPECT_EQ(t.hosts[2].link.conditions.rtt_steps.at(0).extra, milliseconds(30));
  // Sites are in the order of hosts: 0 is oslo.
  EXPECT_FALSE(t.paths[1][0]->trace);
  ASSERT_TRUE(t.paths[0][1]->trace);
  EXPECT_EQ(t.paths[0][1]->trace->steps.at(0).bps, 12e6);
  for (const auto& [a, b] : {std::pair(0, 1), std::pair(1, 0)}) {
    const sim::Conditions& c =
        t.paths[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)]->conditions;
    EXPECT_EQ(c.outages.at(0).every, std::chrono::hours(24));
    EXPECT_EQ(c.outages.at(0).duration, std::chrono::minutes(2));
    EXPECT_EQ(c.cross_traffic.at(0).mean_off, std::chrono::seconds(10));
    EXPECT_EQ(c.cross_traffic.at(1).bps, 1e6);
  }
}

// rate, rate_back, trace and trace_back: what each direction has.
TEST(Topology, TheWayBack) {
  const TempFolder folder;
  const std::string a = folder.Write("a.trace", "1\n"), b = folder.Write("b.trace", "2\n");
  const auto lines = [&](const std::string& rest) {
    const sim::Topology t = BuildTopology(
        Parse(kRest +
              "nodes: {groups: [{site: x}]}\nnetwork: {coordinator_site: y, paths: [{a: x, "
              "b: y, rate: 5 Mbps, " +
              rest + "}]}\n"));
    const auto text = [](const sim::SitePath& p) {
      return p.trace ? fmt::format("{}", p.trace->steps[0].bps / 1e6) + " trace"
                     : fmt::format("{}", p.bps / 1e6);
    };
    return text(*t.paths[0][1]) + ", " + text(*t.paths[1][0]);
  };
  EXPECT_EQ(lines("rate_back: none"), "5, 5");
  EXPECT_EQ(lines("rate_back: 7 Mbps"), "5, 7");
  EXPECT_EQ(lines("trace: " + a), "12 trace, 12 trace");
  EXPECT_EQ(lines("trace: " + a + ", rate_back: 7 Mbps"), "12 trace, 7");
  EXPECT_EQ(lines("trace: " + a + ", trace_back: " + b), "12 trace, 6 trace");
  EXPECT_EQ(lines("rate_back: 7 Mbps, trace_back: " + b), "5, 6 trace");
}

TEST(Topology, BackgroundHasHostsOfItsOwn) {
  const Scenario s =
      Parse(kRest +
            "nodes: {groups: [{count: 2, site: oslo}]}\n"
            "network:\n  coordinator_site: rome\n  paths: [{a: oslo, b: rome}]\n  background:\n"
            "    - {from: rome, to: oslo, flows: 2, streams: 4, link_rate: 40 Mbps}\n"
            "    - {size: 3 MB, pause: 2 s}\n");
  const sim::Topology t = BuildTopology(s);
  ASSERT_EQ(t.hosts.size(), 7u);
  EXPECT_EQ(t.hosts[2].name, "coordinator");
  EXPECT_EQ(t.hosts[3].name, "background 0 sender");
  EXPECT_EQ(t.sites[static_cast<std::size_t>(t.hosts[3].site)], "rome");
  EXPECT_EQ(t.hosts[4].name, "background 0 receiver");
  EXPECT_EQ(t.sites[static_cast<std::size_t>(t.hosts[4].site)], "oslo");
  EXPECT_EQ(t.hosts[4].link.down_bps, 40e6);
  EXPECT_EQ(t.sites[static_cast<std::size_t>(t.hosts[6].site)], "rome");
  const std::vector<sim::BackgroundFlow> flows = BuildBackground(s);
  ASSERT_EQ(flows.size(), 3u);
  for (int i = 0; i < 2; ++i) {
    const sim::BackgroundFlow& flow = flows[static_cast<std::size_t>(i)];
    EXPECT_EQ(flow.from, 3);
    EXPECT_EQ(flow.to, 4);
    EXPECT_EQ(flow.streams, 4);
    EXPECT_EQ(flow.bytes, 0);
  }
  EXPECT_EQ(flows[2].from, 5);
  EXPECT_EQ(flows[2].to, 6);
  EXPECT_EQ(flows[2].bytes, 3'000'000);
  EXPECT_EQ(flows[2].mean_pause, std::chrono::seconds(2));
}

}  // namespace
}  // namespace spes::scenarios
