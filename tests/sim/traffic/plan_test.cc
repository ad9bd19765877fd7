#include "sim/traffic/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace spes::sim {
namespace {

TEST(TrafficPlan, EachMistakeIsNamed) {
  const auto refused = [](const TrafficPlan& plan, const std::string& text) {
    try {
      Validate(plan, 3);
      ADD_FAILURE() << "accepted: " << text;
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(text));
    }
  };
  const Transfer good{0, 1, 5, {}};
  refused({{good, {0, 3, 1, {}}}}, "transfer 1 of the traffic plan names host 3: there are 3");
  refused({{{-1, 0, 1, {}}}}, "transfer 0 of the traffic plan names host -1");
  refused({{{0, 1, -7, {}}}}, "has -7 bytes: at least 0");
  refused({{{2, 2, 1, {}}}}, "carries 1 bytes from host 2 to itself");
  refused({{good, {1, 2, 1, {2}}}}, "transfer 1 of the traffic plan waits for transfer 2");
  refused({{{0, 1, 1, {-1}}}}, "waits for transfer -1: there are 1");
  refused({{{0, 1, 1, {0}}}}, "transfer 0 of the traffic plan can never start");
  refused({{good, {0, 1, 1, {3}}, {1, 2, 1, {1}}, {2, 0, 1, {0, 2}}}},
          "transfer 1 of the traffic plan can never start");
}

TEST(TrafficPlan, WhatIsRightPasses) {
  EXPECT_NO_THROW(Validate({}, 1));
  // Dependencies may be written in any order, and a joint may be waited for.
  EXPECT_NO_THROW(Validate({{{1, 2, 9, {2}}, {0, 1, 0, {}}, {1, 1, 0, {1}}}}, 3));
}

// A chain that a recursive check could not follow.
TEST(TrafficPlan, LongChainsAreChecked) {
  TrafficPlan plan;
  for (int i = 0; i < 300'000; ++i) {
    plan.transfers.push_back({0, 1, 1, i > 0 ? std::vector<int>{i - 1} : std::vector<int>{}});
  }
  EXPECT_NO_THROW(Validate(plan, 2));
  plan.transfers[0].after = {299'999};
  EXPECT_THROW(Validate(plan, 2), std::invalid_argument);
}

TEST(TrafficPlan, BytesAddUpPerHost) {
  const std::int64_t large = 100'000'000'000;
  const auto bytes =
      BytesOfHosts({{{0, 1, large, {}}, {0, 2, large, {}}, {2, 0, 7, {}}, {1, 1, 0, {}}}}, 4);
  EXPECT_EQ(bytes[0].up, 2 * large);
  EXPECT_EQ(bytes[0].down, 7);
  EXPECT_EQ(bytes[1].up, 0);
  EXPECT_EQ(bytes[1].down, large);
  EXPECT_EQ(bytes[2].up, 7);
  EXPECT_EQ(bytes[3].up + bytes[3].down, 0);
}

}  // namespace
}  // namespace spes::sim
