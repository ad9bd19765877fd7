#include "trainer/runtime/fault_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

namespace spes::trainer {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

FaultPlanConfig Crashes(std::vector<NodeId> nodes) {
  FaultPlanConfig config;
  config.random = {{FaultKind::kCrash, std::move(nodes), minutes(10), seconds(30)}};
  config.until = hours(1000);
  config.seed = 7;
  return config;
}

std::vector<Fault> Of(const std::vector<Fault>& plan, FaultKind kind, NodeId node) {
  std::vector<Fault> found;
  std::copy_if(plan.begin(), plan.end(), std::back_inserter(found),
               [&](const Fault& f) { return f.kind == kind && f.node == node; });
  return found;
}

TEST(FaultPlan, ScriptedFaultsComeByTimeAndOtherwiseAsListed) {
  FaultPlanConfig config;
  const Fault late{seconds(9), FaultKind::kOutage, 0, seconds(1), 1};
  const Fault first{seconds(3), FaultKind::kCrash, 1, seconds(1), 1};
  const Fault second{seconds(3), FaultKind::kSlow, 0, seconds(1), 4};
  config.scripted = {late, first, second};
  EXPECT_THAT(MakeFaultPlan(config, 2), ElementsAre(first, second, late));
}

TEST(FaultPlan, OneSeedOnePlan) {
  const FaultPlanConfig config = Crashes({0, 1, kCoordinator});
  const std::vector<Fault> plan = MakeFaultPlan(config, 2);
  EXPECT_EQ(plan, MakeFaultPlan(config, 2));
  FaultPlanConfig other = config;
  other.seed = 8;
  EXPECT_NE(plan, MakeFaultPlan(other, 2));
  EXPECT_TRUE(std::is_sorted(plan.begin(), plan.end(),
                             [](const Fault& a, const Fault& b) { return a.at < b.at; }));
}

TEST(FaultPlan, WhatElseIsConfiguredChangesNothingOfANodesFaults) {
  FaultPlanConfig more = Crashes({2, 1});
  more.random.push_back({FaultKind::kOutage, {0, 1}, minutes(1), seconds(3)});
  more.scripted.push_back({seconds(1), FaultKind::kCorrupt, 1, seconds(0), 1});
  EXPECT_EQ(Of(MakeFaultPlan(Crashes({1}), 3), FaultKind::kCrash, 1),
            Of(MakeFaultPlan(more, 3), FaultKind::kCrash, 1));
}

TEST(FaultPlan, TimesBetweenAndDurationsHaveTheirMeansAndDoNotOverlap) {
  const std::vector<Fault> plan = MakeFaultPlan(Crashes({0}), 1);
  double between = 0, lasting = 0;
  sim::Time end{0};
  for (const Fault& fault : plan) {
    EXPECT_GT(fault.at, end);
    EXPECT_LT(fault.at, hours(1000));
    between += sim::ToSeconds(fault.at - end);
    lasting += sim::ToSeconds(fault.duration);
    end = fault.at + fault.duration;
  }
  // About 5700 draws: the means' standard errors are 1.3 % of them.
  const auto n = static_cast<double>(plan.size());
  EXPECT_NEAR(between / n, 600, 600 * 0.05);
  EXPECT_NEAR(lasting / n, 30, 30 * 0.05);
}

TEST(FaultPlan, ADrawIsExponential) {
  const std::vector<Fault> plan = MakeFaultPlan(Crashes({0}), 1);
  const auto n = static_cast<double>(plan.size());
  const auto longer = static_cast<double>(std::count_if(
      plan.begin(), plan.end(), [](const Fault& f) { return f.duration > seconds(60); }));
  EXPECT_NEAR(longer / n, std::exp(-2), 0.02);
}

TEST(FaultPlan, EveryKindHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int kind = 0; kind < kFaultKinds; ++kind) names.insert(Name(static_cast<FaultKind>(kind)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kFaultKinds));
}

// Ordinary faults without an end, of two items and a list.
FaultPlanConfig ForEver() {
  FaultPlanConfig config = Crashes({0, 1});
  config.until = sim::kNever;
  config.random.push_back({FaultKind::kOutage, {1}, minutes(7), seconds(20)});
  config.scripted = {{minutes(60), FaultKind::kSlow, 0, hours(2), 3},
                     {minutes(61), FaultKind::kCorrupt, 1, seconds(0), 1},
                     {minutes(62), FaultKind::kCrash, 1, sim::kNever, 1}};
  return config;
}

TEST(FaultStream, GoesOnForEverWithTheFaultsOfThePlan) {
  FaultPlanConfig config = ForEver();
  FaultStream stream(config, 2);
  config.until = hours(100);
  const std::vector<Fault> plan = MakeFaultPlan(config, 2);
  ASSERT_GT(plan.size(), 1000U);
  for (const Fault& fault : plan) EXPECT_EQ(stream.Next(), fault);
  EXPECT_GE(stream.Next()->at, hours(100));
  EXPECT_TRUE(stream.Brings(FaultKind::kCrash) && stream.Brings(FaultKind::kCorrupt));
  EXPECT_FALSE(stream.Brings(FaultKind::kFullDisk));
}

TEST(FaultStream, OfARunThatGoesOnBeginsWithTheRestOfWhatLasts) {
  FaultPlanConfig config = ForEver();
  config.random.clear();
  FaultStream listed(config, 2, minutes(90));
  EXPECT_EQ(listed.Next(), (Fault{seconds(0), FaultKind::kSlow, 0, minutes(90), 3}));
  EXPECT_EQ(listed.Next(), (Fault{seconds(0), FaultKind::kCrash, 1, sim::kNever, 1}));
  EXPECT_EQ(listed.Next(), std::nullopt);
  FaultStream over(config, 2, hours(3));
  EXPECT_EQ(over.Next()->kind, FaultKind::kCrash);
  EXPECT_EQ(over.Next(), std::nullopt);

  const FaultPlanConfig random = ForEver();
  FaultStream whole(random, 2), rest(random, 2, hours(3));
  Fault expected = *whole.Next();
  while (expected.at < hours(3)) expected = *whole.Next();
  Fault fault = *rest.Next();
  while (fault.at == seconds(0)) fault = *rest.Next();  // what lasts
  for (int i = 0; i < 100; ++i) {
    expected.at -= hours(3);
    EXPECT_EQ(fault, expected);
    expected = *whole.Next(), fault = *rest.Next();
  }
}

void ExpectRefused(const Fault& fault, const char* why) {
  FaultPlanConfig config;
  config.scripted = {fault};
  try {
    MakeFaultPlan(config, 2);
    FAIL() << why;
  } catch (const std::invalid_argument& e) {
    EXPECT_THAT(e.what(), HasSubstr(why));
  }
}

TEST(FaultPlan, RefusesWhatMakesNoSense) {
  ExpectRefused({seconds(1), FaultKind::kCrash, 2, seconds(1), 1}, "no node 2 in a run of 2 nodes");
  ExpectRefused({seconds(1), FaultKind::kOutage, kCoordinator, seconds(1), 1},
                "the coordinator has no faults of kind outage");
  ExpectRefused({seconds(-1), FaultKind::kCrash, 0, seconds(1), 1}, "before the run");
  ExpectRefused({seconds(1), FaultKind::kOutage, 0, seconds(0), 1}, "needs a duration");
  ExpectRefused({seconds(1), FaultKind::kOutage, 0, sim::kNever, 1}, "must end");
  ExpectRefused({seconds(1), FaultKind::kSlow, 0, seconds(1), 0}, "must be positive");
  ExpectRefused({seconds(1), FaultKind::kClockJump, 0, seconds(1), 0}, "is none");
  ExpectRefused({seconds(1), FaultKind::kSlow, 0, seconds(1), INFINITY}, "finite");
  FaultPlanConfig always = Crashes({0});
  always.random[0].mean_between = seconds(0);
  EXPECT_THROW(MakeFaultPlan(always, 1), std::invalid_argument);
  always = Crashes({0});
  always.random[0].mean_duration = seconds(0);
  EXPECT_THROW(MakeFaultPlan(always, 1), std::invalid_argument);
  always = Crashes({0});
  always.random[0].mean_between = always.random[0].mean_duration = std::chrono::milliseconds(1);
  EXPECT_THROW(MakeFaultPlan(always, 1), std::invalid_argument);  // a billion of them
  FaultPlanConfig never;
  never.scripted = {{seconds(1), FaultKind::kCrash, 0, sim::kNever, 1}};
  EXPECT_EQ(MakeFaultPlan(never, 1).size(), 1U);
}

}  // namespace
}  // namespace spes::trainer
