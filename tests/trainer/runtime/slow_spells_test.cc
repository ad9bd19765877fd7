#include "trainer/runtime/slow_spells.h"

#include <gtest/gtest.h>

namespace spes::trainer {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

SlowSpells Of(std::vector<Fault> scripted, std::vector<RandomFaults> random = {}) {
  return SlowSpells(FaultStream({.scripted = std::move(scripted), .random = std::move(random)}, 2),
                    2);
}

TEST(SlowSpells, AComputationIsSlowedWhileASpellLasts) {
  SlowSpells spells = Of({{milliseconds(500), FaultKind::kSlow, 0, seconds(1), 10}});
  // Half a second at full speed, a second at a tenth, the rest at full speed.
  EXPECT_EQ(spells.Duration(0, seconds(0), seconds(1)), milliseconds(1900));
  EXPECT_EQ(spells.Duration(1, seconds(0), seconds(1)), seconds(1)) << "another node";
  EXPECT_EQ(spells.Duration(0, milliseconds(1450), milliseconds(100)), milliseconds(145));
  EXPECT_EQ(spells.Duration(0, milliseconds(1500), seconds(3)), seconds(3)) << "it is over";
}

TEST(SlowSpells, FactorsOfSeveralAtOnceMultiplyAndMaySpeedUp) {
  SlowSpells spells = Of({{seconds(1), FaultKind::kSlow, 0, seconds(10), 4},
                          {seconds(3), FaultKind::kSlow, 0, seconds(2), 2},
                          {seconds(20), FaultKind::kSlow, 0, seconds(10), 0.5},
                          {seconds(4), FaultKind::kOutage, 0, seconds(10), 1}});
  // 1 s; then 2 s at 1/4, 2 s at 1/8, 6 s at 1/4, which are 2.25 s of work; then 0.75 s.
  EXPECT_EQ(spells.Duration(0, seconds(0), seconds(4)), milliseconds(11'750));
  EXPECT_EQ(spells.Duration(0, seconds(19), seconds(7)), seconds(4));
}

// In parts as at once; and as slow as the share of the time says.
TEST(SlowSpells, RandomOnesAreThoseOfTheStream) {
  const RandomFaults random{FaultKind::kSlow, {0, 1}, seconds(60), seconds(60), 3};
  SlowSpells whole = Of({}, {random}), parts = Of({}, {random});
  const sim::Time all = whole.Duration(0, seconds(0), hours(100));
  sim::Time now{0};
  for (int i = 0; i < 100; ++i) now += parts.Duration(0, now, hours(1));
  EXPECT_NEAR(sim::ToSeconds(now), sim::ToSeconds(all), 1e-3);
  // Half of the time at a third of the speed: work goes on at 2/3 on average.
  EXPECT_NEAR(sim::ToSeconds(all) / 3600, 150, 4);
}

}  // namespace
}  // namespace spes::trainer
