// bfloat16 products with parameters, gradients and moments in float32.
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/trainer/small_model.h"
#include "tests/trainer/ways.h"

namespace spes::trainer {
namespace {

SmallModel In(ComputeType type, const std::function<void(ModelNodeConfig&)>& change = {}) {
  return SmallModel([&](ModelNodeConfig& c) {
    c.compute = type;
    if (const char* device = std::getenv("SPES_TEST_DEVICE")) c.devices = {device};
    if (change) change(c);
  });
}

std::vector<float> Values(const std::vector<NodeBlock>& blocks) {
  std::vector<float> values;
  for (const NodeBlock& block : blocks) {
    const auto part = block.data->as<float>();
    values.insert(values.end(), part.begin(), part.end());
  }
  return values;
}

// Sequences in which each token says what the next one is.
class Chain final : public BatchSource {
 public:
  Chain(std::int64_t vocabulary, std::int64_t context)
      : start_(9, vocabulary, 0), vocabulary_(vocabulary), context_(context) {}
  void Next(std::int64_t sequences, Batch& out) override {
    Batch first;
    start_.Next(sequences, first);
    out = {sequences, context_, {}};
    for (std::int64_t token : first.tokens) {
      for (std::int64_t t = 0; t <= context_; ++t, token = (3 * token + 1) % vocabulary_) {
        out.tokens.push_back(static_cast<std::int32_t>(token));
      }
    }
  }
  std::string Position() const override { return start_.Position(); }
  void Seek(const std::string& position) override { start_.Seek(position); }

 private:
  KeyedTokens start_;
  std::int64_t vocabulary_, context_;
};

TEST(ComputeType, LossesFollowThoseOfFloat32) {
  const auto train = [](ComputeType type) {
    const SmallModel setup = In(type, [](ModelNodeConfig& c) { c.optimizer.lr = 4e-3; });
    const ModelNodeConfig& c = setup.config;
    const auto node = MakeModelNode(c, setup.world, SharedAndExperts(*setup.world.table, 0, 4),
                                    std::make_unique<Chain>(c.model.vocabulary, c.context));
    return node->TrainSteps(1, 60, kGo).steps;
  };
  const auto wide = train(ComputeType::kModel), narrow = train(ComputeType::kBFloat16);
  double difference = 0;
  for (std::size_t i = 0; i < wide.size(); ++i) {
    EXPECT_NEAR(narrow[i].ce, wide[i].ce, 0.03) << i;
    EXPECT_NEAR(narrow[i].z, wide[i].z, 0.03 * wide[i].z) << i;
    EXPECT_TRUE(std::isfinite(narrow[i].grad_norm)) << i;
    difference += std::abs(narrow[i].ce - wide[i].ce);
  }
  EXPECT_GT(difference, 1e-5);  // it is not float32
  EXPECT_LT(narrow.back().ce, narrow.front().ce - 1);
}

TEST(ComputeType, GradientsAreNearThoseOfFloat32) {
  const auto gradients = [](ComputeType type) {
    const SmallModel setup = In(type, [](ModelNodeConfig& c) { c.gradients_only = true; });
    const auto node = setup.Make(0, 4);
    node->TrainSteps(1, 1, kGo);
    return Values(ReadTrainable(*node));
  };
  const std::vector<float> wide = gradients(ComputeType::kModel),
                           narrow = gradients(ComputeType::kBFloat16);
  ASSERT_EQ(wide.size(), narrow.size());
  double error = 0, square = 0;
  for (std::size_t i = 0; i < wide.size(); ++i) {
    EXPECT_TRUE(std::isfinite(narrow[i]));
    error += std::pow(static_cast<double>(narrow[i] - wide[i]), 2);
    square += std::pow(static_cast<double>(wide[i]), 2);
  }
  EXPECT_LE(std::sqrt(error / square), 0.1);
}

// Updates far below what 16 bits resolve add up.
TEST(ComputeType, ParametersAreFloat32) {
  const SmallModel setup = In(ComputeType::kBFloat16, [](ModelNodeConfig& c) {
    c.optimizer.lr = 1e-7;
    c.optimizer.weight_decay = 0;
  });
  const auto node = setup.Make(0);
  const std::vector<float> before = Values(ReadTrainable(*node));
  node->TrainSteps(1, 20, kGo);
  const std::vector<float> after = Values(ReadTrainable(*node));
  int moved = 0, jumped = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i] != 0 && after[i] != before[i]) ++moved;
    if (std::abs(after[i] - before[i]) > 1e-5f) ++jumped;
  }
  EXPECT_GT(moved, static_cast<int>(before.size() / 4));
  EXPECT_EQ(jumped, 0);
}

TEST(ComputeType, AModelInFloat64HasNoUseForIt) {
  try {
    In(ComputeType::kBFloat16, [](ModelNodeConfig& c) { c.model.dtype = DType::kFloat64; }).Make(0);
    ADD_FAILURE() << "no error";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "bfloat16 products want a model in float32; this one is in float64");
  }
}

TEST(ComputeType, WorksForDenseModelsAndCandidates) {
  for (const int experts : {0, 4}) {
    const SmallModel setup = In(ComputeType::kBFloat16, [&](ModelNodeConfig& c) {
      c.model.experts = experts;
      c.candidates = experts > 0 ? 3 : 1;
      c.routing_bias = experts > 0 ? 1 : 0;
      c.routing_bias_length = 4;
      c.model.qk_norm = experts > 0 ? QkNorm::kHead : QkNorm::kNone;
    });
    const auto node = setup.Make(0, 1);
    for (const analysis::StepRecord& step : node->TrainSteps(1, 3, kGo).steps) {
      EXPECT_TRUE(std::isfinite(step.ce));
    }
    node->SetTrainable(SharedAndExperts(*setup.world.table, 1, 1), false);
    node->TrainSteps(4, 1, kGo);
  }
}

}  // namespace
}  // namespace spes::trainer
