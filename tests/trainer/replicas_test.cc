// A node with several devices: bit for bit the node with one that accumulates the same
// microbatches.
#include "trainer/replicas.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/small_model.h"
#include "tests/trainer/ways.h"

namespace spes::trainer {
namespace {

struct Outcome {
  std::string state;  // values, moments, data position
  std::vector<analysis::StepRecord> steps;
  RoutingCounts routing;
};

void ExpectSameBits(const Outcome& a, const Outcome& b) {
  EXPECT_EQ(a.state == b.state, true);
  ASSERT_EQ(a.steps.size(), b.steps.size());
  for (std::size_t i = 0; i < a.steps.size(); ++i) {
    EXPECT_EQ(a.steps[i].ce, b.steps[i].ce) << i;
    EXPECT_EQ(a.steps[i].z, b.steps[i].z) << i;
    EXPECT_EQ(a.steps[i].lb, b.steps[i].lb) << i;
    EXPECT_EQ(a.steps[i].rz, b.steps[i].rz) << i;
    EXPECT_EQ(a.steps[i].grad_norm, b.steps[i].grad_norm) << i;
  }
  EXPECT_EQ(a.routing.tokens, b.routing.tokens);
  EXPECT_EQ(a.routing.routed, b.routing.routed);
  EXPECT_EQ(a.routing.entropy_sum, b.routing.entropy_sum);
}

class ReplicasTest : public ::testing::TestWithParam<Way> {
 protected:
  // `microbatches` of one sequence each, on so many replicas on one device.
  SmallModel Setup(int replicas, int microbatches,
                   const std::function<void(ModelNodeConfig&)>& change = {}) const {
    return SmallModel([&](ModelNodeConfig& c) {
      c.devices.assign(static_cast<std::size_t>(replicas), GetParam().device);
      c.library_operators = GetParam().library_operators;
      c.sequences = microbatches;
      c.micro_sequences = 1;
      if (change) change(c);
    });
  }

  static Outcome Finish(Node& node, TrainResult result) {
    return {node.Save().Text(), std::move(result.steps), std::move(result.routing)};
  }
};

TEST_P(ReplicasTest, GiveTheBitsOfOneThatAccumulates) {
  // Uneven shares too, and more replicas than microbatches.
  for (const int microbatches : {4, 5, 2, 1}) {
    const SmallModel alone = Setup(1, microbatches);
    const auto node = alone.Make(0);
    const Outcome expected = Finish(*node, node->TrainSteps(1, 4, kGo));
    for (const int replicas : {2, 3}) {
      SCOPED_TRACE(std::to_string(replicas) + " replicas, " + std::to_string(microbatches));
      const SmallModel setup = Setup(replicas, microbatches);
      const auto together = setup.Make(0);
      ExpectSameBits(Finish(*together, together->TrainSteps(1, 4, kGo)), expected);
    }
  }
}

TEST_P(ReplicasTest, FollowWhatBecomesOfTheirNode) {
  // Whatever changes a node's own values or what it trains, between steps.
  const auto life = [](const SmallModel& setup) {
    const auto other = setup.Make(1, 1, 10), node = setup.Make(0);
    other->TrainSteps(1, 2, kGo);
    TrainResult all = node->TrainSteps(1, 2, kGo);
    const auto more = [&](std::int64_t step) {
      TrainResult result = node->TrainSteps(step, 1, kGo);
      all.steps.insert(all.steps.end(), result.steps.begin(), result.steps.end());
      all.routing.Add(result.routing);
    };
    const std::string saved = node->Save().Text();
    node->Apply(ReadTrainable(*other), 0.3);
    more(3);
    node->Apply(ReadTrainable(*other));
    more(4);
    node->SetTrainable(SharedAndExperts(*setup.world.table, 1, 2), true);
    more(5);
    node->SetTrainable(SharedAndExperts(*setup.world.table, 0, 1), true);
    more(6);
    node->ResetOptimizer(node->trainable());
    more(7);
    node->Load(saved);
    more(3);
    return Finish(*node, std::move(all));
  };
  const Outcome expected = life(Setup(1, 4));
  ExpectSameBits(life(Setup(2, 4)), expected);
  ExpectSameBits(life(Setup(3, 4)), expected);
}

TEST_P(ReplicasTest, OfANodeThatOnlyComputesGradients) {
  const auto gradients = [&](int replicas) {
    const SmallModel setup =
        Setup(replicas, 4, [](ModelNodeConfig& c) { c.gradients_only = true; });
    const auto other = setup.Make(0, 4, 10), node = setup.Make(0, 4);
    node->TrainSteps(1, 1, kGo);
    other->TrainSteps(1, 1, kGo);
    node->Apply(ReadTrainable(*other));  // other values, whatever they mean
    node->TrainSteps(2, 1, kGo);
    std::string bytes;
    for (const NodeBlock& block : ReadTrainable(*node)) {
      bytes.append(reinterpret_cast<const char*>(block.data->data()),
                   static_cast<std::size_t>(block.data->bytes()));
    }
    return bytes;
  };
  const std::string expected = gradients(1);
  EXPECT_EQ(gradients(2) == expected, true);
  EXPECT_EQ(gradients(3) == expected, true);
}

TEST_P(ReplicasTest, InBfloat16) {
  if (GetParam().name == "Host") return;  // has none
  const auto in_16 = [](ModelNodeConfig& c) { c.compute = ComputeType::kBFloat16; };
  const SmallModel alone = Setup(1, 3, in_16), setup = Setup(2, 3, in_16);
  const auto node = alone.Make(0), together = setup.Make(0);
  const Outcome expected = Finish(*node, node->TrainSteps(1, 3, kGo));
  ExpectSameBits(Finish(*together, together->TrainSteps(1, 3, kGo)), expected);
}

// Tokens as KeyedTokens gives them, but for one that no model knows, once.
class OneBadToken final : public BatchSource {
 public:
  OneBadToken(std::int64_t context, std::size_t at) : tokens_(9, 40, context), at_(at) {}
  void Next(std::int64_t sequences, Batch& out) override {
    tokens_.Next(sequences, out);
    if (!std::exchange(given_, true)) out.tokens[at_] = 1000;
  }
  std::string Position() const override { return tokens_.Position(); }
  void Seek(const std::string& position) override { tokens_.Seek(position); }

 private:
  KeyedTokens tokens_;
  std::size_t at_;
  bool given_ = false;
};

TEST_P(ReplicasTest, AFailureOfOneEndsTheStepOfAll) {
  for (const int replicas : {1, 2, 3}) {
    const SmallModel setup = Setup(replicas, 5);
    for (const std::size_t microbatch : {0, 1, 4}) {
      const auto node =
          MakeModelNode(setup.config, setup.world, SharedAndExperts(*setup.world.table, 0, 1),
                        std::make_unique<OneBadToken>(setup.config.context, microbatch * 17 + 3));
      const std::string before = node->Save().Text();
      try {
        node->TrainSteps(1, 1, kGo);
        ADD_FAILURE() << "no error";
      } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "token 1000 is outside the model's vocabulary of 40");
      }
      // Nothing of the failed step is left over.
      const auto fresh = setup.Make(0);
      node->Load(before);
      fresh->Load(before);
      node->TrainSteps(1, 2, kGo);
      fresh->TrainSteps(1, 2, kGo);
      EXPECT_EQ(node->Save().Text() == fresh->Save().Text(), true);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, ReplicasTest, ::testing::ValuesIn(Ways()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace spes::trainer
