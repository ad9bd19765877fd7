#include "trainer/cost/cost_model.h"

#include <gtest/gtest.h>

#include <cmath>

namespace spes::trainer {
namespace {

using std::chrono::milliseconds;

TEST(CostModel, AStepTakesItsTimeOverTheNodesSpeed) {
  const CostModel fixed({.kind = ComputeCost::kFixed, .step_time = milliseconds(100)}, {1, 0.5}, 0,
                        1);
  EXPECT_EQ(fixed.StepTime(0, 1), milliseconds(100));
  EXPECT_EQ(fixed.StepTime(1, 7), milliseconds(200));
  const CostModel flops({.kind = ComputeCost::kFlops, .device_flops = 1e12, .efficiency = 0.5}, {1},
                        1e11, 1);
  EXPECT_EQ(flops.StepTime(0, 1), milliseconds(200));
}

TEST(CostModel, JitterKeepsTheMeanAndDependsOnNodeAndStepAlone) {
  const CostConfig config{.step_time = milliseconds(100), .jitter = 0.2};
  const CostModel a(config, {1, 1}, 0, 3), b(config, {1, 1}, 0, 3), other(config, {1, 1}, 0, 4);
  EXPECT_EQ(a.StepTime(1, 5), b.StepTime(1, 5));
  EXPECT_NE(a.StepTime(1, 5), a.StepTime(0, 5));
  EXPECT_NE(a.StepTime(1, 5), a.StepTime(1, 6));
  EXPECT_NE(a.StepTime(1, 5), other.StepTime(1, 5));
  EXPECT_NE(a.StepTime(1, 5), other.StepTime(0, 5));  // neighbouring seeds share nothing
  double sum = 0, squares = 0;
  const int n = 20000;
  for (int i = 0; i < n; ++i) {
    const double t = sim::ToSeconds(a.StepTime(0, i)) / 0.1;
    sum += t;
    squares += std::log(t) * std::log(t);
  }
  EXPECT_NEAR(sum / n, 1, 0.01);
  EXPECT_NEAR(std::sqrt(squares / n), 0.2, 0.02);
}

TEST(CostModel, ImpossibleSpeedsAreRefused) {
  EXPECT_THROW(CostModel({}, {1, 0}, 0, 1), std::invalid_argument);
  EXPECT_THROW(CostModel({.kind = ComputeCost::kFlops, .device_flops = 0}, {1}, 1, 1),
               std::invalid_argument);
}

}  // namespace
}  // namespace spes::trainer
