// Merging without reference values; those are in tests/golden.
#include "trainer/sync/merge.h"

#include <gtest/gtest.h>

#include "tests/trainer/protocol/fake_node.h"

namespace spes::trainer {
namespace {

TEST(Merge, AlphaFallsLinearlyToZero) {
  const MergeConfig config{.interval = 10, .alpha = 0.1, .length = 100};
  EXPECT_DOUBLE_EQ(MergeAlpha(config, 0), 0.1);
  EXPECT_DOUBLE_EQ(MergeAlpha(config, 50), 0.05);
  EXPECT_EQ(MergeAlpha(config, 100), 0);
  EXPECT_EQ(MergeAlpha(config, 1000), 0);
  EXPECT_EQ(MergeAlpha({.interval = 10, .alpha = 0.1, .length = 0}, 5), 0);
}

TEST(Merge, ComesAtTheFirstRoundThatReachesAMultipleOfTheInterval) {
  const MergeConfig config{.interval = 10, .alpha = 0.1, .length = 100};
  EXPECT_GT(MergeAlphaOfRound(config, 5, 10), 0);
  EXPECT_EQ(MergeAlphaOfRound(config, 10, 15), 0);
  EXPECT_GT(MergeAlphaOfRound(config, 8, 16), 0);
  EXPECT_EQ(MergeAlphaOfRound({}, 5, 10), 0);
}

TEST(Merge, TiesGoToTheLowerIndexAndFewExpertsHaveFewDonors) {
  // Expert 3 is as similar to 0 as to 2, and less to 1.
  const std::vector<double> s = {1, .1, .5, .7, .1, 1, .5, .2, .5, .5, 1, .7, .7, .2, .7, 1};
  EXPECT_EQ(NearestExperts(s, 4, 2)[3], (std::vector<int>{0, 2}));
  EXPECT_EQ(NearestExperts(s, 4, 9)[3], (std::vector<int>{0, 2, 1}));
  EXPECT_TRUE(NearestExperts({1}, 1, 4)[0].empty());
}

TEST(Merge, DonorsAreTheSameForAllThreeMatrices) {
  // By w1 expert 0's nearest is 1; by v1 and w2 it would be 2.
  const auto table = MakeTinyTable(1, 3);
  World world = MakeTinyWorld(table);
  const double w1[3][4] = {{1, 0, 0, 0}, {1, .1, 0, 0}, {0, 0, 1, 0}};
  const double other[3][4] = {{1, 0, 0, 0}, {0, 0, 1, 0}, {1, .1, 0, 0}};
  for (int e = 0; e < 3; ++e) {
    auto buffer = std::make_shared<Buffer>(table->Allocate(1 + e));
    for (std::size_t i = 0; i < 4; ++i) {
      buffer->as<double>()[i] = w1[e][i];
      buffer->as<double>()[8 + i] = buffer->as<double>()[16 + i] = other[e][i];
    }
    world.blocks[static_cast<std::size_t>(1 + e)].data = buffer;
  }
  const World merged = MergeExperts(world, 0.5, 1, 3);
  const auto x = merged.blocks[1].data->as<double>();
  EXPECT_DOUBLE_EQ(x[1], 0.5 * (0 + .1));
  EXPECT_DOUBLE_EQ(x[8 + 0], 0.5 * (1 + 0));  // towards expert 1's v1, not expert 2's
  EXPECT_DOUBLE_EQ(x[16 + 2], 0.5 * (0 + 1));
  EXPECT_EQ(merged.blocks[1].version, 3);
  EXPECT_EQ(merged.blocks[0].data, world.blocks[0].data);
}

TEST(Merge, OneExpertIsLeftAlone) {
  const World world = MakeTinyWorld(MakeTinyTable(2, 1));
  const World merged = MergeExperts(world, 0.5, 4, 3);
  EXPECT_EQ(merged.blocks[1].data, world.blocks[1].data);
}

TEST(Merge, AZeroExpertIsSimilarToNone) {
  const auto table = MakeTinyTable(1, 2);
  World world = MakeTinyWorld(table);
  world.blocks[1].data = std::make_shared<Buffer>(table->Allocate(1));
  EXPECT_EQ(ExpertSimilarity(world, 0), (std::vector<double>{1, 0, 0, 1}));
}

}  // namespace
}  // namespace spes::trainer
