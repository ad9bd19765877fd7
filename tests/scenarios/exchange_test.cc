#include "scenarios/exchange.h"

#include <gmock/gmock.h>

#include "scenarios/printer.h"
#include "scenarios/topology_builder.h"
#include "tests/scenarios/scenario_testing.h"

namespace spes::scenarios {
namespace {

using sim::ExchangePattern;

// kSmall and a network, whose first line is 5.
std::string Network(const std::string& text) { return ParseError(kSmall + "network:" + text); }

TEST(Exchange, IsThroughTheCoordinatorUnlessSaidOtherwise) {
  EXPECT_EQ(Parse(kSmall).network.exchange.pattern, ExchangePattern::kCoordinator);
  for (const auto pattern : {ExchangePattern::kRing, ExchangePattern::kDirect,
                             ExchangePattern::kTree, ExchangePattern::kCoordinator}) {
    const Scenario s =
        Parse(kSmall + "network: {exchange: {pattern: " + std::string(sim::Name(pattern)) + "}}\n");
    EXPECT_EQ(s.network.exchange.pattern, pattern);
  }
}

TEST(Exchange, EachMistakeIsNamed) {
  EXPECT_THAT(Network("\n  exchange: {pattern: rind}\n"), testing::HasSubstr("ring"));
  EXPECT_EQ(
      Network("\n  exchange: {pattern: coordinators}\n"),
      "s.yaml:6: network.exchange.coordinators: names no site; the pattern coordinators needs "
      "those of the further ones");
  EXPECT_EQ(Network("\n  exchange: {pattern: ring, coordinators: [lan]}\n"),
            "s.yaml:6: network.exchange.coordinators: is for the pattern coordinators, and the "
            "pattern is ring");
  EXPECT_EQ(Network("\n  exchange: {sends: 2}\n"),
            "s.yaml:6: network.exchange.sends: is for the patterns coordinators, ring, direct and "
            "tree; the pattern is coordinator");
  EXPECT_EQ(ParseError(With("nodes", "{groups: [{count: 2, site: x}]}") +
                       "network:\n  coordinator_site: y\n  paths: [{a: x, b: y}]\n"
                       "  exchange: {pattern: coordinators, coordinators: [z]}\n"),
            "s.yaml:8: network.exchange.coordinators: the network has no site 'z'; did you "
            "mean 'x'?");
}

TEST(Exchange, OtherPatternsWaitForAll) {
  const auto ring = [](const std::string& sync) {
    return ParseError(With("sync", sync) + "network: {exchange: {pattern: ring}}\n");
  };
  EXPECT_EQ(ring("{every: 5, quorum: 1}"),
            "s.yaml:4: sync.quorum: is 1, but an exchange by ring takes all nodes; set it to 0, or "
            "use network.exchange.pattern: coordinator");
  EXPECT_EQ(
      ring("{every: 5, deadline: 3 s}"),
      "s.yaml:4: sync.deadline: ends rounds without some nodes, but an exchange by ring takes "
      "all of them; leave it out, or use network.exchange.pattern: coordinator");
  EXPECT_EQ(ring("{every: 5}"), "no error");
}

TEST(Exchange, FurtherCoordinatorsStandBehindTheBackground) {
  const Scenario s = Parse(With("nodes", "{groups: [{count: 2, site: x}]}") +
                           "network:\n  coordinator_site: y\n  paths: [{a: x, b: y}]\n"
                           "  coordinator_link: {up: 3 Gbps}\n  background: [{from: x}]\n"
                           "  exchange: {pattern: coordinators, coordinators: [x, y]}\n");
  const sim::Topology t = BuildTopology(s);
  ASSERT_EQ(t.hosts.size(), 7u);
  EXPECT_EQ(t.hosts[5].name, "coordinator 2");
  EXPECT_EQ(t.hosts[6].name, "coordinator 3");
  EXPECT_EQ(t.sites[static_cast<std::size_t>(t.hosts[5].site)], "x");
  EXPECT_EQ(t.hosts[6].link.up_bps, 3e9);
  const trainer::ExchangeConfig config = BuildExchange(s, t);
  EXPECT_EQ(config.coordinators, (std::vector<int>{2, 5, 6}));
  EXPECT_EQ(config.sites, (std::vector<int>{0, 0}));
}

TEST(Exchange, ReadsBackAsPrinted) {
  const Scenario s =
      Parse(kSmall +
            "network: {exchange: {pattern: coordinators, coordinators: [lan, lan], sends: 3}}\n");
  const ExchangeSection again = Parse(PrintScenario(s)).network.exchange;
  EXPECT_EQ(again.pattern, ExchangePattern::kCoordinators);
  EXPECT_EQ(again.coordinators, (std::vector<std::string>{"lan", "lan"}));
  EXPECT_EQ(again.sends, 3);
}

}  // namespace
}  // namespace spes::scenarios
