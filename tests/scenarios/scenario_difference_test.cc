#include "scenarios/scenario_difference.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "scenarios/scenario.h"
#include "scenarios/scenario_hash.h"
#include "tests/scenarios/scenario_testing.h"

namespace spes::scenarios {
namespace {

std::string Difference(const Scenario& a, const Scenario& b) {
  return FirstDifference(IdentityOf(a).text, IdentityOf(b).text, "here", "there");
}

TEST(ScenarioDifference, NamesTheFirstKeyThatDiffers) {
  Scenario a;
  a.data.domains.resize(2);
  a.data.domains[0].name = "one";
  a.data.domains[1].name = "two";
  a.network.coordinator_link.up_bps = 1e9;
  Scenario b = a;
  EXPECT_EQ(Difference(a, b), "");
  b.sync.schedule.every = 50;
  EXPECT_EQ(Difference(a, b), "sync.every is '25' here and '50' there");
  b.seed = 7;
  EXPECT_EQ(Difference(a, b), "seed is '1' here and '7' there");
  b = a;
  b.data.domains[1].synthetic_tokens = 9;
  EXPECT_EQ(Difference(a, b), "data.domains.1.synthetic_tokens is '0' here and '9' there");
  b = a;
  b.network.coordinator_link.up_bps = 2e9;
  EXPECT_NE(Difference(a, b).find("network.coordinator_link.up"), std::string::npos)
      << Difference(a, b);
  b = a;
  b.data.domains.resize(3);
  b.data.domains[2].name = "three";
  EXPECT_NE(Difference(a, b).find("data.domains.2"), std::string::npos) << Difference(a, b);
}

TEST(ScenarioDifference, WhatHasNoInfluenceOnTheResultDoesNotCount) {
  Scenario a, b;
  b.name = "other";
  b.workers = 3;
  b.devices = {"cuda:0", "cuda:1"};
  b.nodes.devices_per_node = 2;
  b.output.log = "elsewhere.h5";
  b.transport.kind = TransportKind::kTcp;
  EXPECT_EQ(Difference(a, b), "");
}

TEST(ScenarioDifference, FilesDifferByTheirContent) {
  const TempFolder folder;
  Scenario a, b;
  a.data.domains.resize(1);
  a.data.domains[0].name = "text";
  b.data.domains = a.data.domains;
  a.data.domains[0].files = {folder.Write("a", "text")};
  b.data.domains[0].files = {folder.Write("elsewhere/b", "text")};
  EXPECT_EQ(Difference(a, b), "");
  b.training.optimizer.lr = 0.1;
  EXPECT_EQ(Difference(a, b).substr(0, 12), "training.lr ");
  folder.Write("a", "Text");
  EXPECT_EQ(Difference(a, b).substr(0, 20), "data.domains.0.files");
}

TEST(ScenarioDifference, WhatIsNoScenarioIsNamed) {
  EXPECT_EQ(FirstDifference("", "", "here", "there"), "");
  EXPECT_EQ(FirstDifference("a: 1\n", "", "here", "there"), "a is '1' here and not there there");
  EXPECT_THROW(FirstDifference("a: 1\n", "\x01\xff: [", "here", "there"), std::invalid_argument);
}

}  // namespace
}  // namespace spes::scenarios
