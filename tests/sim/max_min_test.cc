#include "sim/max_min.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace spes::sim {
namespace {

using testing::ElementsAre;

struct Want {
  std::vector<int> links;
  double weight = 1;
  double cap = MaxMin::kInfinity;
};

std::vector<double> Rates(const std::vector<double>& capacities, const std::vector<Want>& wants) {
  MaxMin shares(capacities);
  std::vector<int> flows;
  for (const Want& want : wants) flows.push_back(shares.Add(want.links, want.weight, want.cap));
  shares.Update();
  std::vector<double> rates;
  for (const int flow : flows) rates.push_back(shares.Rate(flow));
  return rates;
}

TEST(MaxMin, ALinkIsSharedEqually) {
  EXPECT_THAT(Rates({90}, {{{0}}, {{0}}, {{0}}}), ElementsAre(30, 30, 30));
}

// What one flow cannot use, the others get.
TEST(MaxMin, ABottleneckElsewhereLeavesMore) {
  EXPECT_THAT(Rates({100, 10}, {{{0}}, {{0, 1}}, {{0}}}), ElementsAre(45, 10, 45));
}

TEST(MaxMin, WeightsCountAsManyFlows) {
  EXPECT_THAT(Rates({100}, {{{0}, 3}, {{0}, 1}}), ElementsAre(75, 25));
}

TEST(MaxMin, CapsLeaveTheRestToOthers) {
  EXPECT_THAT(Rates({100}, {{{0}, 3, 30}, {{0}, 1}, {{0}, 1, 20}}), ElementsAre(30, 50, 20));
  EXPECT_THAT(Rates({100}, {{{0}, 1, 30}, {{0}, 1, 20}}), ElementsAre(30, 20)) << "not full";
  EXPECT_THAT(Rates({100}, {{{0}, 1, 70}, {{0}, 1, 60}}), ElementsAre(50, 50));
  EXPECT_THAT(Rates({100}, {{{0}, 1, 0}, {{0}}}), ElementsAre(0, 100));
}

// The textbook chain: a long flow over all links, a short one on each.
TEST(MaxMin, AChainOfUnequalLinks) {
  EXPECT_THAT(Rates({10, 20, 60}, {{{0, 1, 2}}, {{0}}, {{1}}, {{2}}}), ElementsAre(5, 5, 15, 55));
}

TEST(MaxMin, NothingPassesALinkWithoutCapacity) {
  EXPECT_THAT(Rates({0, 10, 0}, {{{0, 1}}, {{0, 1}}, {{1}}, {{2}}}), ElementsAre(0, 0, 10, 0));
}

TEST(MaxMin, AloneAFlowTakesTheSmallestLink) {
  EXPECT_THAT(Rates({10, 4, 60}, {{{0, 1, 2}}}), ElementsAre(4));
  EXPECT_THAT(Rates({10, 4, 60}, {{{0, 1, 2}, 1, 3}}), ElementsAre(3));
}

TEST(MaxMin, TellsWhatMoved) {
  const std::vector<int> links = {0};
  MaxMin shares({100});
  const int a = shares.Add(links, 1), b = shares.Add(links, 1, 10);
  EXPECT_TRUE(shares.outdated());
  shares.Update();
  EXPECT_THAT(shares.moved(), testing::UnorderedElementsAre(a, b));
  EXPECT_TRUE(shares.capped(b));
  EXPECT_EQ(shares.bottleneck(shares.group(a)), 0);
  shares.SetCapacity(0, 50);
  shares.Update();
  EXPECT_TRUE(shares.moved().empty());
  EXPECT_THAT(shares.changed_groups(), ElementsAre(shares.group(a)));
  EXPECT_EQ(shares.level(shares.group(a)), 40);
  shares.SetCapacity(0, 15);
  shares.Update();
  EXPECT_THAT(shares.moved(), ElementsAre(b)) << "below its cap now";
  shares.Update();
  EXPECT_TRUE(shares.moved().empty());
  EXPECT_TRUE(shares.changed_groups().empty());
}

// Slow and obvious: progressive filling in which every flow and link is looked at in each step.
std::vector<double> Reference(const std::vector<double>& capacities,
                              const std::vector<Want>& wants) {
  std::vector<double> rates(wants.size(), 0);
  std::vector<bool> stopped(wants.size(), false);
  double level = 0;
  for (;;) {
    double next = MaxMin::kInfinity;
    for (std::size_t f = 0; f < wants.size(); ++f) {
      if (!stopped[f]) next = std::min(next, wants[f].cap / wants[f].weight);
    }
    std::vector<double> full(capacities.size(), MaxMin::kInfinity);
    for (std::size_t link = 0; link < capacities.size(); ++link) {
      double left = capacities[link], weight = 0;
      for (std::size_t f = 0; f < wants.size(); ++f) {
        if (!std::ranges::count(wants[f].links, static_cast<int>(link))) continue;
        (stopped[f] ? left : weight) += stopped[f] ? -rates[f] : wants[f].weight;
      }
      if (weight > 0) full[link] = std::max(level, left / weight);
      next = std::min(next, full[link]);
    }
    if (next == MaxMin::kInfinity) return rates;
    level = next;
    for (std::size_t f = 0; f < wants.size(); ++f) {
      if (stopped[f]) continue;
      rates[f] = level * wants[f].weight;
      stopped[f] = wants[f].cap / wants[f].weight <= level * (1 + 1e-12);
      for (const int link : wants[f].links) {
        if (full[link] <= level * (1 + 1e-12)) stopped[f] = true;
      }
    }
  }
}

struct Instance {
  std::vector<double> capacities;
  std::vector<Want> wants;
};

Instance RandomInstance(std::mt19937& random) {
  Instance instance;
  const int links = 1 + random() % 12, count = 1 + random() % 30;
  for (int i = 0; i < links; ++i) instance.capacities.push_back(1 + random() % 1000 / 7.0);
  if (random() % 8 == 0) instance.capacities[random() % links] = 0;
  const int kinds = 1 + random() % 6;  // of routes, so that some flows share theirs
  std::vector<std::vector<int>> routes(kinds);
  for (std::vector<int>& route : routes) {
    for (int link = 0; link < links; ++link) {
      if (random() % 3 == 0) route.push_back(link);
    }
    if (route.empty()) route.push_back(random() % links);
  }
  for (int i = 0; i < count; ++i) {
    Want want{.links = routes[random() % kinds], .weight = 1.0 + random() % 4};
    if (random() % 2) want.cap = random() % 400 / 10.0;
    instance.wants.push_back(want);
  }
  return instance;
}

// The definition: no link is overfull, and every flow is at its cap or crosses a full link on which
// none gets more per weight.
void ExpectMaxMin(const Instance& instance, const std::vector<double>& rates) {
  const auto& [capacities, wants] = instance;
  std::vector<double> used(capacities.size()), highest(capacities.size());
  for (std::size_t f = 0; f < wants.size(); ++f) {
    for (const int link : wants[f].links) {
      used[link] += rates[f];
      highest[link] = std::max(highest[link], rates[f] / wants[f].weight);
    }
  }
  for (std::size_t link = 0; link < capacities.size(); ++link) {
    EXPECT_LE(used[link], capacities[link] * (1 + 1e-9));
  }
  for (std::size_t f = 0; f < wants.size(); ++f) {
    EXPECT_GE(rates[f], 0);
    EXPECT_LE(rates[f], wants[f].cap);
    bool held_back = rates[f] >= wants[f].cap * (1 - 1e-9);
    for (const int link : wants[f].links) {
      held_back |= used[link] >= capacities[link] * (1 - 1e-9) &&
                   rates[f] / wants[f].weight >= highest[link] * (1 - 1e-9);
    }
    EXPECT_TRUE(held_back) << f;
  }
}

TEST(MaxMin, RandomInstancesMeetTheDefinition) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 2000; ++trial) {
    const Instance instance = RandomInstance(random);
    const std::vector<double> rates = Rates(instance.capacities, instance.wants);
    ExpectMaxMin(instance, rates);
    const std::vector<double> reference = Reference(instance.capacities, instance.wants);
    for (std::size_t f = 0; f < rates.size(); ++f) EXPECT_NEAR(rates[f], reference[f], 1e-9);
    if (HasFailure()) FAIL() << "trial " << trial;
  }
}

TEST(MaxMin, ScaleAndOrderChangeNothing) {
  std::mt19937 random(8);
  for (int trial = 0; trial < 300; ++trial) {
    Instance instance = RandomInstance(random);
    const std::vector<double> rates = Rates(instance.capacities, instance.wants);
    std::ranges::reverse(instance.wants);
    std::vector<double> reversed = Rates(instance.capacities, instance.wants);
    std::ranges::reverse(reversed);
    std::ranges::reverse(instance.wants);
    for (double& capacity : instance.capacities) capacity *= 1e6;
    for (Want& want : instance.wants) want.cap *= 1e6, want.weight *= 32;
    const std::vector<double> scaled = Rates(instance.capacities, instance.wants);
    for (std::size_t f = 0; f < rates.size(); ++f) {
      EXPECT_NEAR(scaled[f], 1e6 * rates[f], 1e-3);
      EXPECT_NEAR(reversed[f], rates[f], 1e-9);
    }
  }
}

// Whatever the history, the shares are those of the flows that are there.
TEST(MaxMin, ChangesLeadToTheSharesOfAFreshStart) {
  std::mt19937 random(9);
  for (int trial = 0; trial < 100; ++trial) {
    Instance instance = RandomInstance(random);
    const std::vector<Want> kinds = instance.wants;  // stay in place for their links
    MaxMin shares(instance.capacities);
    struct Present {
      int flow;
      Want want;
    };
    std::vector<Present> present;
    for (int change = 0; change < 60; ++change) {
      const auto pick = [&] { return random() % present.size(); };
      switch (present.empty() ? 0 : random() % 6) {
        case 0:
        case 1: {
          const Want& want = kinds[random() % kinds.size()];
          present.push_back({shares.Add(want.links, want.weight, want.cap), want});
          break;
        }
        case 2: {
          const auto i = static_cast<std::ptrdiff_t>(pick());
          shares.Remove(present[i].flow);
          present.erase(present.begin() + i);
          break;
        }
        case 3: {
          Present& p = present[pick()];
          p.want.cap = random() % 3 ? random() % 300 / 10.0 : MaxMin::kInfinity;
          shares.SetCap(p.flow, p.want.cap);
          break;
        }
        case 4: {
          Present& p = present[pick()];
          p.want.weight = 1.0 + random() % 5;
          shares.SetWeight(p.flow, p.want.weight);
          break;
        }
        default: {
          const std::size_t link = random() % instance.capacities.size();
          instance.capacities[link] = random() % 4 ? random() % 1000 / 10.0 : 0;
          shares.SetCapacity(static_cast<int>(link), instance.capacities[link]);
        }
      }
      if (random() % 3) continue;
      shares.Update();
      std::vector<Want> wants;
      for (const Present& p : present) wants.push_back(p.want);
      const std::vector<double> reference = Reference(instance.capacities, wants);
      for (std::size_t i = 0; i < present.size(); ++i) {
        EXPECT_NEAR(shares.Rate(present[i].flow), reference[i], 1e-9);
      }
      if (HasFailure()) FAIL() << "trial " << trial << ", change " << change;
    }
  }
}

}  // namespace
}  // namespace spes::sim
