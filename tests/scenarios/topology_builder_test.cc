#include "scenarios/topology_builder.h"

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

TEST(Matrix, TheOneThatComesWithTheProgramIsWhole) {
  const std::vector<NetworkPath> paths =
      ReadPathMatrix(SPES_SOURCE_DIR "/scenarios/networks/wan_regions.csv", 0, 1);
  std::vector<std::string> sites;
  for (const NetworkPath& p : paths) {
    if (p.a == p.b) sites.push_back(p.a);
  }
  EXPECT_EQ(paths.size(), sites.size() * (sites.size() + 1) / 2);
  EXPECT_EQ(paths[1].a, "oregon");
  EXPECT_EQ(paths[1].b, "virginia");
  EXPECT_EQ(paths[1].rtt, milliseconds(67));
  EXPECT_DOUBLE_EQ(paths[1].bps, 0.79e9);
}

TEST(Matrix, RefusesJunk) {
  const TempFolder folder;
  const auto error = [&](const std::string& text) {
    const std::string file = folder.Write("m.csv", text);
    const std::string message = ErrorOf([&] { ReadPathMatrix(file, 0, 1); });
    return message.starts_with(file) ? message.substr(file.size()) : message;
  };
  const std::string head = "# a comment\r\na,b,rtt_ms,gbps\r\n\r\n";
  EXPECT_EQ(error(head + "x,y,1,1\r\n"), "no error");
  EXPECT_EQ(error(head), ":3: holds no path between sites");
  EXPECT_EQ(error(""), ": holds no path between sites");
  EXPECT_EQ(error("x,y,1,1\n"), ":1: the first line must be a,b,rtt_ms,gbps, not 'x,y,1,1'");
  EXPECT_EQ(error(head + "x,y,1\n"),
            ":4: 'x,y,1' is not two sites, a round trip and a rate: a,b,rtt_ms,gbps");
  EXPECT_EQ(error(head + "x,,1,1\n"),
            ":4: 'x,,1,1' is not two sites, a round trip and a rate: a,b,rtt_ms,gbps");
  EXPECT_EQ(error(head + "x,y,1,1,1\n"),
            ":4: 'x,y,1,1,1' is not two sites, a round trip and a rate: a,b,rtt_ms,gbps");
  EXPECT_EQ(error(head + "x,y,-1,1\n"), ":4: rtt_ms '-1' is not a number from 0 to 10000000");
  EXPECT_EQ(error(head + "x,y,nan,1\n"), ":4: rtt_ms 'nan' is not a number from 0 to 10000000");
  EXPECT_EQ(error(head + "x,y,1,fast\n"), ":4: gbps 'fast' is not a number from 0 to 1000000");
  EXPECT_EQ(error(head + "x,y,1,-2\n"), ":4: gbps '-2' is not a number from 0 to 1000000");
  EXPECT_EQ(error(head + "x,y,1,0\n"), ":4: a rate of 0 gbps carries nothing");
  EXPECT_EQ(error(head + "x,y,1,1\ny,x,1,1\n"), "no error");
  EXPECT_EQ(error(head + "x,y,1,1\nx,x,1,1\ny,x,2,1\n"), ":6: y and x have other values in line 4");
  EXPECT_EQ(error(head + "x,y,1,1\nx,y,1,3\n"), ":5: x and y have other values in line 4");
  const std::string none = folder.Path("none.csv");
  EXPECT_EQ(ErrorOf([&] { ReadPathMatrix(none, 0, 1); }), none + ": cannot be read");
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
                ":3: network: there is no path between bonn and oslo; give it in network.paths or "
                "network.matrix");
}

}  // namespace
}  // namespace spes::scenarios
