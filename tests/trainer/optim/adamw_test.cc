#include "trainer/optim/adamw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <vector>

namespace spes::trainer {
namespace {

template <class T>
Buffer Filled(const std::vector<double>& values) {
  Buffer buffer(static_cast<std::int64_t>(values.size() * sizeof(T)));
  for (std::size_t i = 0; i < values.size(); ++i) buffer.as<T>()[i] = static_cast<T>(values[i]);
  return buffer;
}

template <class T>
void ExpectFormula(DType type, double tolerance) {
  const OptimizerConfig config;
  const std::vector<double> start{0.5, -0.25, 0.125, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  Buffer values = Filled<T>(start);
  AdamMoments moments{Buffer(values.bytes()), Buffer(values.bytes())};
  std::vector<double> w = start, m(w.size()), v(w.size());
  for (int t = 1; t <= 4; ++t) {
    std::vector<double> gradient;
    for (std::size_t i = 0; i < w.size(); ++i) {
      gradient.push_back(i == 3 ? 0 : std::sin(static_cast<double>(t * 13 + static_cast<int>(i))));
    }
    const double lr = 0.01 * t, factor = 0.5;
    const Buffer g = Filled<T>(gradient);
    AdamWUpdate(config, lr, factor, type, g.data(), static_cast<std::int64_t>(w.size()), values,
                moments);
    EXPECT_EQ(moments.updates, t);
    for (std::size_t i = 0; i < w.size(); ++i) {
      const double clipped = gradient[i] * factor;
      m[i] = 0.9 * m[i] + 0.1 * clipped;
      v[i] = 0.95 * v[i] + 0.05 * clipped * clipped;
      const double update =
          m[i] / (1 - std::pow(0.9, t)) / (std::sqrt(v[i] / (1 - std::pow(0.95, t))) + 1e-8);
      w[i] = w[i] * (1 - lr * 0.1) - lr * update;
      EXPECT_NEAR(static_cast<double>(values.as<T>()[i]), w[i], tolerance) << "t " << t;
    }
  }
  EXPECT_EQ(values.as<T>()[3], 0);  // as padding: no value and no gradient
}

TEST(AdamW, FollowsTheFormula) {
  ExpectFormula<double>(DType::kFloat64, 1e-14);
  ExpectFormula<float>(DType::kFloat32, 2e-6);
}

TEST(AdamW, LeavesWhatLiesBehindAlone) {
  Buffer values = Filled<float>({1, 1, 1, 1});
  AdamMoments moments{Buffer(values.bytes()), Buffer(values.bytes())};
  const Buffer g = Filled<float>({1, 1});
  AdamWUpdate({}, 0.1, 1, DType::kFloat32, g.data(), 2, values, moments);
  EXPECT_NE(values.as<float>()[1], 1);
  EXPECT_EQ(values.as<float>()[2], 1);
}

TEST(Clip, ScalesLargeGradientsOnly) {
  EXPECT_EQ(ClipFactor({.clip_norm = 1}, 0.5), 1);
  EXPECT_DOUBLE_EQ(ClipFactor({.clip_norm = 1}, 4), 1 / (4 + 1e-6));
  EXPECT_DOUBLE_EQ(ClipFactor({.clip_norm = 0.5}, 4), 0.5 / (4 + 1e-6));
  EXPECT_EQ(ClipFactor({.clip_norm = 0}, 1e9), 1);
}

TEST(SquaredNorm, AddsSquares) {
  const Buffer g = Filled<double>({3, 4, 12});
  EXPECT_EQ(SquaredNorm(DType::kFloat64, g.data(), 3), 169);
  const Buffer f = Filled<float>(std::vector<double>(1000, 0.5));
  EXPECT_EQ(SquaredNorm(DType::kFloat32, f.data(), 1000), 250);
}

TEST(Schedule, HasNoWarmUpWithoutSteps) {
  const OptimizerConfig config{.lr = 1, .warmup_steps = 0, .decay_steps = 10};
  EXPECT_LT(LearningRate(config, 1), 1);
  EXPECT_GT(LearningRate(config, 1), 0.97);
  EXPECT_DOUBLE_EQ(LearningRate(config, 10), 0.1);
}

TEST(Validate, RefusesImpossibleSettings) {
  EXPECT_NO_THROW(Validate(OptimizerConfig{}));
  EXPECT_THROW(Validate(OptimizerConfig{.lr = 0}), std::invalid_argument);
  EXPECT_THROW(Validate(OptimizerConfig{.warmup_steps = -1}), std::invalid_argument);
  EXPECT_THROW(Validate(OptimizerConfig{.final_lr_fraction = 2}), std::invalid_argument);
  EXPECT_THROW(Validate(OptimizerConfig{.beta1 = 1}), std::invalid_argument);
  EXPECT_THROW(Validate(OptimizerConfig{.beta2 = -0.1}), std::invalid_argument);
  EXPECT_THROW(Validate(OptimizerConfig{.eps = 0}), std::invalid_argument);
  EXPECT_THROW(Validate(OptimizerConfig{.weight_decay = -1}), std::invalid_argument);
  EXPECT_THROW(Validate(OptimizerConfig{.clip_norm = -1}), std::invalid_argument);
}

}  // namespace
}  // namespace spes::trainer
