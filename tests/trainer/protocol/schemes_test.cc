// The settings of the one scheme against each other and against histories computed by hand. Node n
// adds n + 1 per step to all that it trains; block 0 is shared, block 1 + e is expert e; block b
// begins as 1 + b.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/trainer/protocol/cluster.h"

namespace spes::trainer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Each;
using testing::ElementsAre;

const AllocationConfig kAll{.kind = AllocationKind::kAll};

CoordinatorConfig Every(int every, std::int64_t total) {
  CoordinatorConfig config;
  config.schedule = {.total_steps = total, .every = every};
  return config;
}

std::string HashOf(int nodes, const CoordinatorConfig& config, const PeerConfig& peer = {}) {
  Cluster c(nodes, config, 2, peer);
  c.Run();
  EXPECT_TRUE(c.coordinator->finished());
  return c.Hash();
}

// Whatever a node trains or not, after the run it holds what was published, to the bit. The last
// world stays with the coordinator, so this looks at the one before.
void ExpectPublishedEverywhere(const Cluster& c) {
  const World& world = c.published[c.published.size() - 2].world;
  for (const auto& node : c.nodes) {
    for (BlockId id = 0; id < c.table->size(); ++id) {
      if (std::binary_search(node->trainable().begin(), node->trainable().end(), id)) continue;
      EXPECT_EQ(BlockChecksum((*c.table)[id], DType::kFloat64, *node->Value(id)),
                BlockChecksum((*c.table)[id], DType::kFloat64,
                              *world.blocks[static_cast<std::size_t>(id)].data))
          << id;
    }
  }
}

// Every node trains everything; the mean of what 2 nodes add in 3 steps is 4.5.
TEST(Schemes, AllWithTheMeanIsFederatedAveraging) {
  CoordinatorConfig config = Every(3, 6);
  config.allocation = kAll;
  Cluster c(2, config);
  c.Run();
  for (BlockId id = 0; id < c.table->size(); ++id) EXPECT_EQ(c.WorldValue(id), 1 + id + 9.0);
}

// v ← μ v + Δ, w ← w − η (Δ + μ v) with Δ = −3 (the mean of what the nodes add), η = 0.5, μ = 0.5:
// v: −3, −4.5, −5.25; steps η(3 + 0.5·3) = 2.25, η(3 + 0.5·4.5) = 2.625, η(3 + 0.5·5.25) = 2.8125.
TEST(Schemes, DiLoCoFollowsAHistoryComputedByHand) {
  CoordinatorConfig config = Every(2, 6);
  config.allocation = kAll;
  config.update.outer_shared =
      config.update.outer_experts = {.nesterov = true, .lr = 0.5, .momentum = 0.5};
  Cluster c(2, config);
  c.Run();
  for (BlockId id = 0; id < c.table->size(); ++id) {
    EXPECT_DOUBLE_EQ(c.WorldValue(id), 1 + id + 2.25 + 2.625 + 2.8125);
  }
}

TEST(Schemes, NesterovWithoutMomentumAndWithRateOneIsTheMean) {
  CoordinatorConfig config = Every(2, 6);
  const World mean = [&] {
    Cluster c(3, config);
    c.Run();
    return c.coordinator->world();
  }();
  config.update.outer_shared =
      config.update.outer_experts = {.nesterov = true, .lr = 1, .momentum = 0};
  Cluster c(3, config);
  c.Run();
  for (BlockId id = 0; id < c.table->size(); ++id) {
    const double expected = mean.blocks[static_cast<std::size_t>(id)].data->as<double>()[0];
    EXPECT_NEAR(c.WorldValue(id), expected, 1e-12 * expected);
  }
}

TEST(Schemes, LosslessCodingWithErrorFeedbackIsNoCoding) {
  const CoordinatorConfig plain = Every(2, 6);
  const std::string hash = HashOf(3, plain);
  for (const CodecConfig& codec :
       {CodecConfig{.error_feedback = true}, CodecConfig{.differences = true, .zstd = 3},
        CodecConfig{.zstd = 1}}) {
    CoordinatorConfig config = plain;
    config.update.codec = codec;
    EXPECT_EQ(HashOf(3, config, {.codec = codec}), hash);
  }
}

// Published = decoded: nobody goes on with values of its own, and a code is read back the same by
// all, whichever way it is coded.
TEST(Schemes, EveryoneAdoptsWhatTheCodeIsReadBackAs) {
  const std::string exact = HashOf(3, Every(2, 8));
  for (const CodecKind kind : {CodecKind::kBf16, CodecKind::kInt8, CodecKind::kInt4}) {
    for (const bool differences : {false, true}) {
      const CodecConfig codec{
          .kind = kind, .differences = differences, .error_feedback = true, .group = 4};
      CoordinatorConfig config = Every(2, 8);
      config.update.codec = codec;
      config.update.merge = {.interval = 4, .alpha = 0.3, .length = 100};
      Cluster c(3, config, 2, {.codec = codec});
      c.Run();
      ASSERT_TRUE(c.coordinator->finished());
      ExpectPublishedEverywhere(c);
      for (const auto& node : c.nodes) {
        EXPECT_EQ(node->applied.size(), 3u * static_cast<unsigned>(c.table->size()))
            << "the owner's copy is not the published one: it gets that too";
      }
    }
  }
  CoordinatorConfig coded = Every(2, 8);
  coded.update.codec = {.kind = CodecKind::kInt4, .group = 4};
  EXPECT_NE(HashOf(3, coded), exact);
}

// Nothing is sent back to a sole trainer whose code is published as it is: yet it goes on from what
// that is read back as.
TEST(Schemes, ASoleTrainerGoesOnFromWhatItsCodeIsReadBackAs) {
  for (const bool differences : {false, true}) {
    const CodecConfig codec{
        .kind = CodecKind::kInt4, .differences = differences, .error_feedback = true, .group = 4};
    Cluster c(2, Every(2, 6), 2, {.codec = codec});
    // Values that no common scale gives exactly.
    for (auto& node : c.nodes)
      node->Change([k = 0](double& x) mutable {
        ++k;
        x += 0.01 * k * k;
      });
    c.Run();
    ASSERT_EQ(c.published.size(), 4U);
    for (int n = 0; n < 2; ++n) {
      const auto& node = c.nodes[static_cast<std::size_t>(n)];
      for (const BlockId id : node->trainable()) {
        const auto now = node->Value(id)->as<double>();
        const auto then =
            c.published[2].world.blocks[static_cast<std::size_t>(id)].data->as<double>();
        for (const BlockPart& part : (*c.table)[id].parts) {
          for (std::int64_t i = 0; i < part.elements; ++i) {
            const auto at = static_cast<std::size_t>(part.offset + i);
            EXPECT_NEAR(now[at], then[at] + 2 * (n + 1), 1e-12) << id << " " << i;
          }
        }
      }
    }
  }
}

TEST(Schemes, CodesTakeLessOfTheWireThanValues) {
  CoordinatorConfig config = Every(2, 4);
  const auto bytes = [](const Cluster& c) { return c.recorder.rounds.front(); };
  Cluster plain(2, config);
  plain.Run();
  config.update.codec = {.kind = CodecKind::kBf16};
  Cluster coded(2, config, 2, {.codec = {.kind = CodecKind::kBf16}});
  coded.Run();
  EXPECT_EQ(bytes(plain).up_shared_bytes, 2 * 5 * 8);
  EXPECT_EQ(bytes(plain).up_expert_bytes, 4 * 12 * 8);
  EXPECT_LE(bytes(coded).up_expert_bytes, 4 * (12 * 2 + 8));
  EXPECT_LT(bytes(coded).down_expert_bytes, bytes(plain).down_expert_bytes);
  EXPECT_EQ(bytes(plain).up_bytes - bytes(coded).up_bytes,
            bytes(plain).up_shared_bytes + bytes(plain).up_expert_bytes -
                bytes(coded).up_shared_bytes - bytes(coded).up_expert_bytes);
}

TEST(Schemes, AFragmentIsSentWhenItsTurnComes) {
  CoordinatorConfig config = Every(4, 8);
  config.schedule.fragments = 2;  // layer 0 with its experts is fragment 1: steps 2, 6 and the end
  Cluster c(2, config);
  c.Run();
  ASSERT_EQ(c.recorder.rounds.size(), 3U);
  EXPECT_EQ(c.recorder.rounds[0].last_step, 2);
  EXPECT_EQ(c.recorder.rounds[1].last_step, 6);
  EXPECT_EQ(c.WorldValue(0), 1 + 8 * 1.5);
  EXPECT_EQ(c.WorldValue(1), 2 + 8);
}

TEST(Schemes, ExpertsOfTheirOwnInterval) {
  CoordinatorConfig config = Every(2, 8);
  config.schedule.experts_every = 4;
  Cluster c(2, config);
  c.Run();
  ASSERT_EQ(c.recorder.rounds.size(), 4U);
  EXPECT_EQ(c.recorder.rounds[0].up_expert_bytes, 0);
  EXPECT_GT(c.recorder.rounds[1].up_expert_bytes, 0);
  EXPECT_EQ(c.WorldValue(0), 1 + 8 * 1.5);
  for (BlockId id = 1; id < c.table->size(); ++id) {
    EXPECT_EQ(c.WorldValue(id), 1 + id + 8 * (id <= 2 ? 1 : 2)) << "its owner's own steps";
  }
}

// Two nodes, H = 3, τ = 1, α = 0.5, shared block from 0 on. Node n trains 3 steps, offers, trains
// one more, then adopts: own ← (own + published) / 2.
TEST(Schemes, StepsAheadAreMixedWithWhatIsPublished) {
  CoordinatorConfig config = Every(3, 6);
  config.schedule.overlap = 1;
  Cluster c(2, config, 2, {.keep = 0.5});
  c.Run();
  ASSERT_TRUE(c.coordinator->finished());
  // Node 0: 1 + 3 = 4, ahead 5; node 1: 1 + 6 = 7, ahead 9. Published 5.5; they go on from 5.25
  // and 7.25, two more steps each: 7.25 and 11.25.
  EXPECT_DOUBLE_EQ(c.WorldValue(0), (7.25 + 11.25) / 2);
  for (const auto& node : c.nodes) {
    EXPECT_THAT(node->trained_steps, ElementsAre(1, 2, 3, 4, 5, 6));
  }
  EXPECT_EQ(c.recorder.steps.size(), 12U);
  for (const auto& step : c.recorder.steps) EXPECT_EQ(step.round, step.step <= 3 ? 1 : 2);
}

TEST(Schemes, TheExchangeHidesBehindStepsAhead) {
  const auto end = [](int overlap) {
    CoordinatorConfig config = Every(4, 8);
    config.schedule.overlap = overlap;
    Cluster c(2, config);
    c.runtime.script = [](NodeId, NodeId, Message&) -> sim::Time { return seconds(1); };
    c.Run();
    return c.recorder.rounds.back().end_s;
  };
  EXPECT_NEAR(end(0) - end(3), 2, 1e-6) << "one second there, one back";
}

TEST(Schemes, NeverRotatingIsContiguous) {
  CoordinatorConfig config = Every(2, 6);
  const std::string hash = HashOf(3, config);
  config.allocation.rotate_every = 1000;
  EXPECT_EQ(HashOf(3, config), hash);
}

// Three nodes, one expert each, that go on by one node every round.
TEST(Schemes, RotatingExpertsTakeTheirMomentsAlong) {
  CoordinatorConfig config = Every(1, 3);
  config.allocation.rotate_every = 1;
  Cluster c(3, config, 1);
  c.Run();
  ASSERT_TRUE(c.coordinator->finished());
  // Each expert was with each node for one step: 1 + 2 + 3.
  for (BlockId id = 1; id <= 3; ++id) EXPECT_EQ(c.WorldValue(id), 1 + id + 6);
  // Node 1 trained expert 1, then 0, then 2: it was handed the moments of 0 and 2.
  EXPECT_THAT(c.nodes[1]->trainable(), ElementsAre(0, 3));
  EXPECT_TRUE(c.nodes[1]->moments.contains(1));
  EXPECT_TRUE(c.nodes[1]->moments.contains(3));
  EXPECT_FALSE(c.nodes[1]->moments.contains(0)) << "it has trained that all the time";
  EXPECT_EQ(c.nodes[1]->moments.at(1)->updates, 1);
  EXPECT_EQ(c.nodes[1]->moments.at(3)->updates, 2);
  EXPECT_GT(c.recorder.rounds[0].up_moment_bytes, 0);
  EXPECT_EQ(c.recorder.rounds[2].up_moment_bytes, 0) << "nobody goes on after the last round";

  config.allocation.moments = RotatedMoments::kReset;
  Cluster reset(3, config, 1);
  reset.Run();
  EXPECT_EQ(reset.recorder.rounds[0].up_moment_bytes, 0);
  EXPECT_TRUE(reset.nodes[1]->moments.empty());
}

TEST(Schemes, LoadAwareSharesAreMadeFromWhatWasMeasured) {
  CoordinatorConfig config = Every(1, 4);
  config.allocation = {.kind = AllocationKind::kLoad, .rotate_every = 2};
  Cluster c(2, config);  // four experts
  for (auto& node : c.nodes) node->routed = {{90, 5, 5, 20}};
  c.Run();
  ASSERT_TRUE(c.coordinator->finished());
  EXPECT_THAT(c.nodes[0]->trainable(), ElementsAre(0, 1)) << "one expert bears most";
  EXPECT_THAT(c.nodes[1]->trainable(), ElementsAre(0, 2, 3, 4));
}

TEST(Schemes, MomentsAreAveragedOrResetAlongWithTheirBlocks) {
  CoordinatorConfig config = Every(2, 4);
  config.moments = MomentsRule::kAveraged;
  Cluster c(2, config, 2, {.moments = MomentsRule::kAveraged});
  c.Run();
  // After round 1 both had 2 steps: the first moments are 2 and 2.
  ASSERT_TRUE(c.nodes[0]->moments.contains(0));
  EXPECT_EQ(c.nodes[0]->moments.at(0)->first->as<double>()[0], 2);
  EXPECT_EQ(c.nodes[0]->moments.at(0)->second->as<double>()[0], 4);
  EXPECT_FALSE(c.nodes[0]->moments.contains(1)) << "its own copy was adopted, moments and all";

  config.moments = MomentsRule::kReset;
  Cluster reset(2, config, 2, {.moments = MomentsRule::kReset});
  reset.Run();
  EXPECT_EQ(reset.nodes[0]->resets, 1);
  EXPECT_THAT(reset.nodes[0]->reset, ElementsAre(0, 1, 2));
}

// Node 2's result of round 1 comes after the quorum of 2: it counts in round 2, a third as much as
// a timely one by (1 + 1)^−log2(3).
TEST(Schemes, ALateResultMayCountInTheNextRound) {
  CoordinatorConfig config = Every(2, 4);
  config.quorum = 2;
  config.late = LateRule::kNextRound;
  config.staleness_power = std::log2(3.0);
  Cluster c(3, config);
  c.runtime.script = [](NodeId from, NodeId, Message& m) -> sim::Time {
    const auto* offer = std::get_if<Offer>(&m);
    if (offer && from == 2 && offer->span.round == 1) return seconds(1);
    return milliseconds(offer && from == 1 ? 500 : 10);
  };
  c.Run();
  ASSERT_TRUE(c.coordinator->finished());
  ASSERT_EQ(c.recorder.rounds.size(), 2U);
  EXPECT_EQ(c.recorder.rounds[0].arrived, 2);
  EXPECT_EQ(c.recorder.rounds[1].late, 1);
  EXPECT_EQ(c.recorder.rounds[1].arrived, 2) << "the late one and the first timely one";
  // Round 1: 1 + (2 + 4) / 2 = 4. Round 2: node 0 with 4 + 2, node 2 with 1 + 6 at a third.
  EXPECT_NEAR(c.WorldValue(0), (6 + 7 / 3.0) / (1 + 1 / 3.0), 1e-12);
}

TEST(Schemes, FrozenSharedPartsAreTrainedByTheOthers) {
  CoordinatorConfig config = Every(2, 4);
  config.allocation.frozen_shared = {{{0}, {"layers.0.q"}}};
  Cluster c(2, config);
  c.Run();
  ASSERT_TRUE(c.coordinator->finished());
  EXPECT_EQ(c.WorldValue(0), 1 + 4 * 2.0) << "by node 1 alone";
  ExpectPublishedEverywhere(c);
}

TEST(Schemes, UnevenSharesAndNodesWithoutExpertsTrain) {
  for (int experts = 1; experts <= 9; ++experts) {
    const auto table = MakeTinyTable(1, experts);
    Cluster c(4, Every(2, 4), table);
    c.Run();
    ASSERT_TRUE(c.coordinator->finished()) << experts;
    EXPECT_EQ(c.WorldValue(0), 1 + 4 * 2.5);
    for (BlockId id = 1; id <= experts; ++id) {
      const int owner = c.allocation.trainers(id).front();
      EXPECT_EQ(c.WorldValue(id), 1 + id + 4 * (owner + 1));
    }
  }
}

}  // namespace
}  // namespace spes::trainer
