#include "scenarios/validate_network.h"

#include "tests/scenarios/scenario_testing.h"

namespace spes::scenarios {
namespace {

// kSmall and a network, whose first line is 5.
std::string Network(const std::string& text) { return ParseError(kSmall + "network:" + text); }

// Two nodes at x, the coordinator at y, and a path between them.
std::string OnPath(const std::string& rest) {
  return ParseError(With("nodes", "{groups: [{count: 2, site: x}]}") +
                    "network:\n  coordinator_site: y\n  paths:\n    - {a: x, b: y" + rest + "}\n");
}

TEST(ValidateNetwork, EveryoneNeedsAWayToEveryone) {
  EXPECT_EQ(ParseError(With("nodes", "{groups: [{site: here}, {site: there}]}")),
            "s.yaml: network: there is no path between sites 'here' and 'there'; give one, or let "
            "traffic pass through other sites with routing: shortest");
  const std::string graph =
      With("nodes", "{groups: [{count: 2, site: x}]}") +
      "network:\n  routing: shortest\n  coordinator_site: y\n  paths:\n    - {a: x, b: hub}\n";
  EXPECT_EQ(ParseError(graph + "    - {a: hub, b: y}\n"), "no error");
  EXPECT_EQ(ParseError(graph + "    - {a: hub2, b: y}\n"),
            "s.yaml:5: network: there is no path between sites 'x' and 'y', not even through other "
            "sites");
}

TEST(ValidateNetwork, SitesMustBeKnown) {
  EXPECT_EQ(
      ParseError(With("nodes", "{groups: [{count: 2, site: tokio}]}") +
                 "network: {paths: [{a: tokyo, b: seoul}]}\n"),
      "s.yaml:1: nodes.groups.0.site: the network has no site 'tokio'; did you mean 'tokyo'?");
  EXPECT_EQ(
      Network("\n  background:\n    - {from: lan, to: lan}\n    - {from: lan, to: lam}\n"),
      "s.yaml:8: network.background.1.to: the network has no site 'lam'; did you mean 'lan'?");
  EXPECT_EQ(Network("\n  background:\n    - {from: mars}\n"),
            "s.yaml:7: network.background.0.from: the network has no site 'mars'; there is lan");
  EXPECT_EQ(Network("\n  sites:\n    - {name: lam}\n"),
            "s.yaml:7: network.sites.0.name: the network has no site 'lam'; did you mean 'lan'?");
  EXPECT_EQ(Network("\n  sites:\n    - {link: {up: 1 Gbps}}\n"),
            "s.yaml:7: network.sites.0.name: a site needs its name");
  EXPECT_EQ(Network("\n  sites:\n    - {name: lan}\n    - {name: lan}\n"),
            "s.yaml:8: network.sites.1.name: another site is called 'lan' as well");
  EXPECT_EQ(Network("\n  sites:\n    - {name: lan}\n"), "no error");
}

TEST(ValidateNetwork, OnePathForEachPair) {
  EXPECT_EQ(
      ParseError(kSmall + "network:\n  paths: [{a: x, b: y, rate: 1 Mbps}, {a: y, b: x, rate: 2 "
                          "Mbps}]\n  coordinator_site: y\nnodes2: {}\n"),
      "s.yaml:8: unknown key 'nodes2' in 'scenario'; did you mean 'nodes'?");
  EXPECT_EQ(Network("\n  paths:\n    - {a: x, b: y}\n    - {a: y, b: x}\n"),
            "s.yaml:8: network.paths.1: another path is between 'y' and 'x' as well");
  EXPECT_EQ(Network("\n  paths:\n    - {a: x, b: y}\n    - {a: x}\n"),
            "s.yaml:8: network.paths.1: a path needs its two sites, a and b");
  EXPECT_EQ(
      Network("\n  paths:\n    - {a: x, b: x, rate_back: 1 Mbps}\n"),
      "s.yaml:7: network.paths.0: the path within a site has no way back; leave out rate_back "
      "and trace_back");
  EXPECT_EQ(
      OnPath(", rate_back: 0 Mbps"),
      "s.yaml:8: network.paths.0.rate_back: '0 Mbps' is not 'none' or a rate above 0 bps and at "
      "most 1000000 Gbps, such as '100 Mbps'");
  EXPECT_EQ(OnPath(", rate_back: 7"),
            "s.yaml:8: network.paths.0.rate_back: '7' has no unit; write for example '7 Mbps'");
}

TEST(ValidateNetwork, MatrixSettingsNeedAMatrix) {
  for (const char* key :
       {"path_loss: 0.1", "path_loss_burst: 2", "path_queue_bdp: 2", "path_rate: 5 Mbps"}) {
    const std::string name = std::string(key).substr(0, std::string(key).find(':'));
    EXPECT_EQ(Network(std::string("\n  ") + key + "\n"),
              "s.yaml:6: network." + name +
                  ": is of the paths of network.matrix or latency_matrix, which is not given");
  }
  const TempFolder folder;
  const std::string list = folder.Write("m.csv", "a,b,rtt_ms,gbps\nx,y,1,1\n");
  const std::string square = folder.Write("l.csv", ",x,y\nx,,1\ny,1,\n");
  EXPECT_EQ(
      Network("\n  matrix: " + list + "\n  latency_matrix: " + square + "\n"),
      "s.yaml:7: network.latency_matrix: is given beside network.matrix; one of them says it");
  EXPECT_EQ(Network("\n  rate_matrix: " + square + "\n"),
            "s.yaml:6: network.rate_matrix: needs the round trips of network.latency_matrix");
  EXPECT_EQ(Network("\n  matrix: " + list + "\n  path_rate: 5 Mbps\n"),
            "s.yaml:7: network.path_rate: has no meaning beside a matrix that says the rates");
  EXPECT_EQ(Network("\n  latency_matrix: " + square + "\n  path_rate: 5 Mbps\n"), "no error");
  EXPECT_EQ(Network("\n  latency_matrix: " + square + "\n  rate_matrix: none.csv\n"),
            "s.yaml:7: network.rate_matrix: there is no file 'none.csv'");
  const std::string bad = folder.Write("b.csv", ",x,y\nx,,1\ny,2,\n");
  EXPECT_EQ(Network("\n  latency_matrix: " + bad + "\n"),
            bad +
                ":3: the matrix is not symmetric: ms from y to x is 2, but 1 the other way in "
                "line 2");
}

TEST(ValidateNetwork, TracesAreReadAtOnce) {
  const TempFolder folder;
  const std::string junk = folder.Write("junk.trace", "1\nx\n");
  const std::string why =
      junk + ":2: 'x' is not a time in whole milliseconds from 0 to 10000000000";
  EXPECT_EQ(ParseError(With("nodes", "{groups: [{count: 2, link: {down_trace: " + junk + "}}]}")),
            "s.yaml:1: nodes.groups.0.link.down_trace: " + why);
  EXPECT_EQ(Network("\n  coordinator_link:\n    up_trace: " + junk + "\n"),
            "s.yaml:7: network.coordinator_link.up_trace: " + why);
  EXPECT_EQ(Network("\n  sites:\n    - name: lan\n      link: {up_trace: " + junk + "}\n"),
            "s.yaml:8: network.sites.0.link.up_trace: " + why);
  EXPECT_EQ(OnPath(", trace: " + junk), "s.yaml:8: network.paths.0.trace: " + why);
  EXPECT_EQ(OnPath(", trace_back: " + junk), "s.yaml:8: network.paths.0.trace_back: " + why);
  EXPECT_EQ(OnPath(", trace: none.trace"),
            "s.yaml:8: network.paths.0.trace: there is no file 'none.trace'");
  EXPECT_EQ(
      Network("\n  trace_interval: 1 us\n"),
      "s.yaml:6: network.trace_interval: '1 us' is not a duration of at least 1 ms and at most "
      "1 d, such as '40 ms'");
}

TEST(ValidateNetwork, Conditions) {
  const auto error = [](const std::string& conditions) {
    return OnPath(", conditions: {" + conditions + "}");
  };
  const std::string key = "s.yaml:8: network.paths.0.conditions";
  EXPECT_EQ(
      error("outages: [{at: 1 s, duration: 10 s, every: 10 s}]"),
      key + ": has an outage of 10 s that comes again every 10 s: it must last less than that");
  EXPECT_EQ(error("outages: [{at: 1 s}]"), key + ": has an outage that takes no time");
  EXPECT_EQ(error("outages: [{duration: 0 s}]"),
            key +
                ".outages.0.duration: '0 s' is not a duration above 0 s and at most 100 d, such as "
                "'40 ms'");
  EXPECT_EQ(error("diurnal: {depth: 1}"),
            key + ".diurnal.depth: '1' is not a number of at least 0 and below 1");
  EXPECT_EQ(error("rtt_steps: [{at: 2 s, extra: 1 ms}, {at: 1 s}]"),
            key + ": has steps of the round trip that are not in order");
  EXPECT_EQ(error("cross_traffic: [{on: 1 s, off: 1 s}]"),
            key + ": has cross traffic of 0 bit/s: it must be positive and finite");
  EXPECT_EQ(error("cross_traffic: [{rate: 1 Mbps, on: 1 s}]"),
            key +
                ": has cross traffic that is on for 1 s and off for 0 s: both above 0, or both 0 "
                "for traffic that never stops");
  EXPECT_EQ(
      error("outage: [{at: 1 s}]"),
      "s.yaml:8: unknown key 'outage' in 'network.paths.0.conditions'; did you mean 'outages'?");
  EXPECT_EQ(error("cross_traffic: [{rate: 1 Mbps}]"), "no error");
  EXPECT_EQ(ParseError(With("nodes",
                            "{groups: [{count: 2, link: {conditions: {outages: [{at: 1 s}]}}}"
                            "]}")),
            "s.yaml:1: nodes.groups.0.link.conditions: has an outage that takes no time");
}

TEST(ValidateNetwork, Loss) {
  EXPECT_EQ(OnPath(", loss: 0.01, loss_burst: 0.5"),
            "s.yaml:8: network.paths.0.loss_burst: '0.5' is not a number of at least 1");
  EXPECT_EQ(
      OnPath(", loss: 0.9, loss_burst: 2"),
      "s.yaml:5: network: the path between sites 'x' and 'y' cannot lose 0.9 of its packets in "
      "bursts of 2");
}

TEST(ValidateNetwork, Tcp) {
  EXPECT_EQ(
      Network(" {tcp: {segment_bytes: 100}}\n"),
      "s.yaml:5: network.tcp.segment_bytes: '100' is not a whole number of at least 536 and at "
      "most 65000");
  EXPECT_EQ(Network(" {tcp: {congestion: bbr}}\n"),
            "s.yaml:5: network.tcp.congestion: 'bbr' is not cubic or reno");
  EXPECT_EQ(
      Network(" {tcp: {initial_window: 2000}}\n"),
      "s.yaml:5: network.tcp.initial_window: '2000' is not a whole number of at least 1 and at "
      "most 1000");
  EXPECT_EQ(Network(" {tcp: {coarse_factor: 101}}\n"),
            "s.yaml:5: network.tcp.coarse_factor: '101' is not a whole number of at least 1 and at "
            "most 100");
  EXPECT_EQ(
      Network(" {fidelity: packets}\n"),
      "s.yaml:5: network.fidelity: 'packets' is not ideal, fluid, hybrid, coarse or packet; did "
      "you mean 'packet'?");
}

TEST(ValidateNetwork, EveryLevelHasItsName) {
  for (const auto& [name, level] :
       std::vector<std::pair<std::string, Fidelity>>{{"ideal", Fidelity::kIdeal},
                                                     {"fluid", Fidelity::kFluid},
                                                     {"hybrid", Fidelity::kHybrid},
                                                     {"coarse", Fidelity::kCoarse},
                                                     {"packet", Fidelity::kPacket}}) {
    EXPECT_EQ(Parse(kSmall, {"network.fidelity=" + name}).network.fidelity, level);
  }
}

}  // namespace
}  // namespace spes::scenarios
