#include "sim/max_min.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace spes::sim {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

TEST(MaxMin, ALinkIsSharedEqually) {
  EXPECT_THAT(MaxMinRates(std::vector<double>{90}, std::vector<MaxMinFlow>{{{0}}, {{0}}, {{0}}}),
              ElementsAre(30, 30, 30));
}

// What one flow cannot use, the others get.
TEST(MaxMin, ABottleneckElsewhereLeavesMore) {
  const std::vector<double> capacities = {100, 10};
  const std::vector<MaxMinFlow> flows = {{{0}}, {{0, 1}}, {{0}}};
  EXPECT_THAT(MaxMinRates(capacities, flows), ElementsAre(45, 10, 45));
}

TEST(MaxMin, WeightsCountAsManyFlows) {
  const std::vector<MaxMinFlow> flows = {{{0}, 3}, {{0}, 1}};
  EXPECT_THAT(MaxMinRates(std::vector<double>{100}, flows), ElementsAre(75, 25));
}

// The textbook chain: a long flow over all links, a short one on each.
TEST(MaxMin, AChainOfUnequalLinks) {
  const std::vector<double> capacities = {10, 20, 60};
  const std::vector<MaxMinFlow> flows = {{{0, 1, 2}}, {{0}}, {{1}}, {{2}}};
  EXPECT_THAT(MaxMinRates(capacities, flows), ElementsAre(5, 5, 15, 55));
}

TEST(MaxMin, NothingAndNoLinks) {
  EXPECT_TRUE(MaxMinRates(std::vector<double>{1, 2}, {}).empty());
  EXPECT_THAT(MaxMinRates({}, std::vector<MaxMinFlow>{{}}),
              ElementsAre(std::numeric_limits<double>::infinity()));
}

// The definition: no link is overfull, and every flow crosses a full link on which none gets more.
TEST(MaxMin, RandomNetworksMeetTheDefinition) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    const int links = 1 + random() % 12, count = 1 + random() % 20;
    std::vector<double> capacities(links);
    for (double& c : capacities) c = 1 + random() % 1000 / 7.0;
    std::vector<MaxMinFlow> flows(count);
    for (MaxMinFlow& flow : flows) {
      flow.weight = 1 + random() % 4;
      for (int link = 0; link < links; ++link) {
        if (random() % 3 == 0) flow.links.push_back(link);
      }
      if (flow.links.empty()) flow.links.push_back(0);
    }
    const std::vector<double> rates = MaxMinRates(capacities, flows);
    std::vector<double> used(links), highest(links);
    for (int f = 0; f < count; ++f) {
      for (const int link : flows[f].links) {
        used[link] += rates[f];
        highest[link] = std::max(highest[link], rates[f] / flows[f].weight);
      }
    }
    for (int link = 0; link < links; ++link) EXPECT_LE(used[link], capacities[link] * (1 + 1e-9));
    for (int f = 0; f < count; ++f) {
      EXPECT_GT(rates[f], 0);
      bool held_back = false;
      for (const int link : flows[f].links) {
        held_back |= used[link] >= capacities[link] * (1 - 1e-9) &&
                     rates[f] / flows[f].weight >= highest[link] * (1 - 1e-9);
      }
      EXPECT_TRUE(held_back);
    }
  }
}

}  // namespace
}  // namespace spes::sim
