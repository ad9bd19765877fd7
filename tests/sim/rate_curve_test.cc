#include "sim/rate_curve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

namespace spes::sim {
namespace {

using namespace std::chrono_literals;

std::shared_ptr<const RateTrace> Trace(std::vector<RateTrace::Step> steps, Time period) {
  return std::make_shared<const RateTrace>(RateTrace{std::move(steps), period});
}

TEST(RateCurve, AConstantIsALine) {
  const RateCurve curve(8e9);
  EXPECT_TRUE(curve.constant());
  EXPECT_EQ(curve.At(5s), 8e9);
  EXPECT_EQ(curve.NextChange(0s), kNever);
  EXPECT_DOUBLE_EQ(curve.BytesBy(10), 10);
  EXPECT_DOUBLE_EQ(curve.When(10), 10);
}

TEST(RateCurve, ATraceStartsAgain) {
  const RateCurve curve(1, Trace({{0s, 8e9}, {1s, 0}, {2s, 16e9}}, 4s), {}, 1);
  EXPECT_EQ(curve.At(0s), 8e9);
  EXPECT_EQ(curve.At(1s), 0);
  EXPECT_EQ(curve.At(3999ms), 16e9);
  EXPECT_EQ(curve.At(4s), 8e9);
  EXPECT_EQ(curve.NextChange(0s), 1s);
  EXPECT_EQ(curve.NextChange(2s), 4s);
  EXPECT_EQ(curve.NextChange(4s), 5s);
  EXPECT_DOUBLE_EQ(curve.BytesBy(4e9), 1e9 + 4e9);
  EXPECT_DOUBLE_EQ(curve.When(1e9), 1e9) << "before the pause, not after it";
  EXPECT_DOUBLE_EQ(curve.When(1e9 + 2), 2e9 + 1);
  EXPECT_DOUBLE_EQ(curve.When(5e9 * 1000), 4e9 * 1000) << "the end of lap 1000";
  EXPECT_EQ(curve.At(500ms), 8e9) << "earlier times can be asked for again";
}

TEST(RateCurve, ALastStepHolds) {
  const RateCurve curve(1, Trace({{0s, 8e9}, {1s, 4e9}}, 0s), {}, 1);
  EXPECT_EQ(curve.At(100h), 4e9);
  EXPECT_EQ(curve.NextChange(1s), kNever);
  EXPECT_DOUBLE_EQ(curve.When(2e9), 3e9);
  const RateCurve ends(1, Trace({{0s, 8e9}, {1s, 0}}, 0s), {}, 1);
  EXPECT_DOUBLE_EQ(ends.When(1e9), 1e9);
  EXPECT_TRUE(std::isinf(ends.When(1e9 + 1)));
}

TEST(RateCurve, OutagesComeAgain) {
  Conditions conditions;
  conditions.outages = {{.at = 10s, .duration = 2s, .every = 60s}};
  const RateCurve curve(8e9, nullptr, conditions, 1);
  for (const Time lap : {0s, 60s, 6000s}) {
    EXPECT_EQ(curve.At(lap + 9s), 8e9);
    EXPECT_EQ(curve.At(lap + 10s), 0);
    EXPECT_EQ(curve.At(lap + 12s), 8e9);
  }
  EXPECT_DOUBLE_EQ(curve.BytesBy(60e9), 58e9);
}

TEST(RateCurve, TheBusyHourTakesItsShare) {
  Conditions conditions;
  conditions.diurnal = {.depth = 0.5, .period = 24h, .busiest = 20h};
  const RateCurve curve(100, nullptr, conditions, 1);
  EXPECT_NEAR(curve.At(20h), 50, 0.1);
  EXPECT_NEAR(curve.At(8h), 100, 0.1);
  EXPECT_NEAR(curve.At(14h), 75, 2);
  EXPECT_NEAR(curve.BytesBy(24.0 * 3600e9) * 8, 75 * 24 * 3600, 1) << "the mean";
  EXPECT_EQ(curve.NextChange(0h), 15min);
}

TEST(RateCurve, CrossTrafficTakesItsRate) {
  Conditions conditions;
  conditions.cross_traffic = {{.bps = 30}};
  const RateCurve always(100, nullptr, conditions, 1);
  EXPECT_EQ(always.At(0s), 70);
  EXPECT_EQ(always.NextChange(0s), kNever);
  conditions.cross_traffic = {{.bps = 130}};
  EXPECT_EQ(RateCurve(100, nullptr, conditions, 1).At(0s), 0) << "never negative";

  conditions.cross_traffic = {{.bps = 40, .mean_on = 1s, .mean_off = 3s}};
  const RateCurve sometimes(100, nullptr, conditions, 1), same(100, nullptr, conditions, 1),
      other(100, nullptr, conditions, 2);
  const double seconds = 100'000;
  EXPECT_NEAR(sometimes.BytesBy(seconds * 1e9) * 8 / seconds, 90, 0.5) << "a quarter of the time";
  EXPECT_EQ(same.BytesBy(1e13), sometimes.BytesBy(1e13));
  EXPECT_NE(other.BytesBy(1e13), sometimes.BytesBy(1e13));
}

TEST(RateCurve, ATraceOfOneValueIsConstant) {
  for (const auto& trace : {Trace({{0s, 8e9}}, 1s), Trace({{0s, 8e9}, {3s, 8e9}}, 10s)}) {
    const RateCurve curve(1, trace, {}, 1);
    EXPECT_TRUE(curve.constant());
    EXPECT_EQ(curve.At(5s), 8e9);
    EXPECT_EQ(curve.NextChange(1s), kNever);
    EXPECT_DOUBLE_EQ(curve.When(1e12), 1e12);
  }
}

TEST(RateCurve, WhatOthersTakeWholeNeverChanges) {
  Conditions conditions;
  conditions.cross_traffic = {{.bps = 200}, {.bps = 1, .mean_on = 1s, .mean_off = 1s}};
  conditions.outages = {{.at = 0s, .duration = 2s, .every = 10s}};
  const RateCurve curve(100, nullptr, conditions, 1);
  EXPECT_EQ(curve.At(5s), 0);
  EXPECT_EQ(curve.NextChange(5s), kNever);
  EXPECT_TRUE(std::isinf(curve.When(1)));
}

// The trace has something only while there is an outage: nobody sees that from its parts.
TEST(RateCurve, LooksAheadForALimitedTimeOnly) {
  Conditions conditions;
  conditions.outages = {{.at = 5ms, .duration = 5ms, .every = 10ms}};
  const RateCurve curve(1, Trace({{0s, 0}, {5ms, 1e8}}, 10ms), conditions, 1);
  EXPECT_TRUE(std::isinf(curve.When(1)));
  Time t{0};
  for (int i = 0; i < 5; ++i) {
    const Time next = curve.NextChange(t);
    ASSERT_GT(next, t);
    EXPECT_EQ(curve.NextChange(t), next) << "it goes no further for being asked again";
    EXPECT_EQ(curve.At(next), 0);
    t = next;
  }
}

// The second source of one link and the first of the next.
TEST(RateCurve, NoSourceOfCrossTrafficIsThatOfAnotherLink) {
  const CrossTraffic traffic{.bps = 40, .mean_on = 1s, .mean_off = 3s};
  CrossTraffic nothing = traffic;
  nothing.bps = 1e-9;
  Conditions second, first;
  second.cross_traffic = {nothing, traffic};
  first.cross_traffic = {traffic, nothing};
  for (const std::uint64_t link : {1, 2, 3}) {
    const RateCurve here(100, nullptr, second, link), next(100, nullptr, first, link + 1);
    EXPECT_GT(std::abs(here.BytesBy(1e12) - next.BytesBy(1e12)), 1);
  }
}

TEST(RateCurve, WhenAndBytesByAreInverse) {
  Conditions conditions;
  conditions.diurnal = {.depth = 0.9, .period = 1min, .busiest = 20s};
  conditions.outages = {{.at = 7s, .duration = 1s, .every = 9s}};
  conditions.cross_traffic = {{.bps = 5e8, .mean_on = 1s, .mean_off = 1s}};
  const RateCurve curve(1, Trace({{0s, 1e9}, {3s, 5e7}}, 5s), conditions, 3);
  double before = -1;
  for (double bytes = 1; bytes < 1e12; bytes *= 1.7) {
    const double at = curve.When(bytes);
    EXPECT_NEAR(curve.BytesBy(at), bytes, 1e-6 * bytes);
    EXPECT_GT(at, before);
    before = at;
  }
}

}  // namespace
}  // namespace spes::sim
