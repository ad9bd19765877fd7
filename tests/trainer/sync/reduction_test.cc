#include "trainer/sync/reduction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tests/trainer/protocol/fake_node.h"

namespace spes::trainer {
namespace {

NodeBlock Filled(const BlockTable& table, BlockId id, double value) {
  auto buffer = std::make_shared<Buffer>(table.Allocate(id));
  for (double& x : buffer->as<double>()) x = value;
  return {id, std::move(buffer)};
}

class ReductionTest : public ::testing::Test {
 protected:
  std::shared_ptr<const BlockTable> table = MakeTinyTable(1, 3);  // block 0 shared, 1 to 3 experts
  World world = MakeTinyWorld(table);
  double First(const World& w, BlockId id) const {
    return w.blocks[static_cast<std::size_t>(id)].data->as<double>()[0];
  }
};

TEST_F(ReductionTest, MeanOfSharedBlocksWeightedByTokensAndOwnersCopyOfExperts) {
  Reduction r({.shared = {ReductionKind::kTokenMean}}, world, {0, 1, 2});
  const NodeBlock expert = Filled(*table, 2, 9);
  r.Add(1, {Filled(*table, 0, 4), expert}, 3);
  r.Add(0, {Filled(*table, 0, 8), Filled(*table, 1, 7)}, 1);
  r.Exclude(2);
  const Reduction::Result result = r.Finish(5);
  EXPECT_EQ(First(result.world, 0), (8 * 1 + 4 * 3) / 4.0);
  EXPECT_EQ(result.world.blocks[2].data, expert.data);  // not a copy
  EXPECT_EQ(result.world.blocks[0].version, 5);
  EXPECT_EQ(result.world.blocks[3].version, 0);  // its owner did not come
  EXPECT_EQ(result.world.blocks[3].data, world.blocks[3].data);
  EXPECT_EQ(result.source, (std::vector<int>{Reduction::kComputed, 0, 1, Reduction::kUnchanged}));
  EXPECT_THAT(result.moments, ::testing::Each(nullptr));
}

TEST_F(ReductionTest, TheRuleSaysWhichOfTokensAndFactorCount) {
  const auto reduced = [&](ReductionKind kind) {
    Reduction r({.shared = {kind}}, world, {0, 1, 2});
    r.Exclude(0);
    r.Add(2, {Filled(*table, 0, 8)}, 3, 0.5);
    r.Add(1, {Filled(*table, 0, 2)}, 1, 1);
    return First(r.Finish(1).world, 0);
  };
  EXPECT_DOUBLE_EQ(reduced(ReductionKind::kMean), (2 * 1 + 8 * 0.5) / 1.5);
  EXPECT_DOUBLE_EQ(reduced(ReductionKind::kTokenMean), (2 * 1 + 8 * 1.5) / 2.5);
  EXPECT_EQ(reduced(ReductionKind::kOwner), 2);
  EXPECT_EQ(reduced(ReductionKind::kTrimmedMean), 5);
  EXPECT_EQ(reduced(ReductionKind::kMedian), 5);
}

TEST_F(ReductionTest, EachKindOfBlockHasItsRule) {
  Reduction r({.shared = {ReductionKind::kMedian}, .experts = {ReductionKind::kOwner}}, world,
              {0, 1, 2});
  const NodeBlock expert = Filled(*table, 1, 70);
  r.Add(0, {Filled(*table, 0, 1), expert}, 1);
  r.Add(1, {Filled(*table, 0, 100), Filled(*table, 1, 60), Filled(*table, 2, 3)}, 1);
  r.Add(2, {Filled(*table, 0, 3)}, 1);
  const Reduction::Result result = r.Finish(1);
  EXPECT_EQ(First(result.world, 0), 3);
  EXPECT_EQ(result.world.blocks[1].data, expert.data);
  EXPECT_EQ(result.source, (std::vector<int>{Reduction::kComputed, 0, 1, Reduction::kUnchanged}));
}

// Against sorting each element's values, for every number of contributions and trim.
TEST(RobustReduction, LeavesOutTheSmallestAndLargestOfEachElement) {
  const auto table = std::make_shared<BlockTable>(
      DType::kFloat32, std::vector<BlockSpec>{MakeBlock(DType::kFloat32, BlockKind::kShared, 0, -1,
                                                        {{"a", {3, 67}}, {"b", {5}}})});
  World world{table, {{0, std::make_shared<const Buffer>(table->Allocate(0))}}};
  std::mt19937 random(3);
  for (int n = 1; n <= 9; ++n) {
    std::vector<int> members(static_cast<std::size_t>(n));
    std::iota(members.begin(), members.end(), 0);
    for (const double trim : {0.0, 0.1, 0.25, 0.49999999999, -1.0}) {  // −1: the median
      const ReductionRule rule = trim < 0 ? ReductionRule{ReductionKind::kMedian}
                                          : ReductionRule{ReductionKind::kTrimmedMean, trim};
      Reduction r({.shared = rule}, world, members);
      std::vector<SharedBuffer> sent;
      for (const int node : members) {
        auto buffer = std::make_shared<Buffer>(table->Allocate(0));
        for (const BlockPart& part : (*table)[0].parts) {
          for (std::int64_t i = 0; i < part.elements; ++i) {
            buffer->as<float>()[static_cast<std::size_t>(part.offset + i)] =
                static_cast<float>(random() % 1000) / 7 - 60;
          }
        }
        sent.push_back(buffer);
        r.Add(node, {{0, buffer}}, 1 + node);
      }
      const SharedBuffer reduced = r.Finish(1).world.blocks[0].data;
      EXPECT_EQ(n == 1, reduced == sent.front());
      std::size_t cut = static_cast<std::size_t>(std::max(0.0, trim) * n + 1e-9);
      if (trim < 0 || 2 * cut >= sent.size()) cut = (sent.size() - 1) / 2;
      for (std::size_t i = 0; i < reduced->as<float>().size(); ++i) {
        std::vector<float> values;
        for (const SharedBuffer& each : sent) values.push_back(each->as<float>()[i]);
        std::sort(values.begin(), values.end());
        double sum = 0;
        for (std::size_t k = cut; k < values.size() - cut; ++k) sum += values[k];
        const double expected = sum / static_cast<double>(values.size() - 2 * cut);
        ASSERT_NEAR(reduced->as<float>()[i], expected, 1e-5) << n << " nodes, trim " << trim;
      }
    }
  }
  EXPECT_THROW(Validate(ReductionRule{ReductionKind::kTrimmedMean, 0.5}), std::invalid_argument);
  EXPECT_THROW(Validate(ReductionRule{ReductionKind::kTrimmedMean, -0.1}), std::invalid_argument);
}

TEST_F(ReductionTest, MomentsAreReducedAsTheirBlocks) {
  const auto with = [&](BlockId id, double first, double second, std::int64_t updates) {
    NodeBlock block = Filled(*table, id, 1);
    block.moments = std::make_shared<const BlockMoments>(
        BlockMoments{Filled(*table, id, first).data, Filled(*table, id, second).data, updates});
    return block;
  };
  const auto reduced = [&](ReductionKind kind) {
    Reduction r({.shared = {kind}}, world, {0, 1, 2});
    const NodeBlock expert = with(2, 5, 6, 7);
    r.Add(1, {with(0, 4, 40, 20), expert}, 3);
    r.Add(0, {with(0, 8, 80, 30), Filled(*table, 1, 1)}, 1);
    r.Add(2, {Filled(*table, 0, 1)}, 9);  // has none
    const std::vector<SharedMoments> moments = r.Finish(1).moments;
    EXPECT_EQ(moments[1], nullptr);
    EXPECT_EQ(moments[2], expert.moments);  // not a copy
    EXPECT_EQ(moments[3], nullptr);
    return moments[0];
  };
  const SharedMoments mean = reduced(ReductionKind::kMean);
  EXPECT_EQ(mean->first->as<double>()[0], 6);
  EXPECT_EQ(mean->second->as<double>()[4], 60);
  EXPECT_EQ(mean->updates, 30);
  const SharedMoments tokens = reduced(ReductionKind::kTokenMean);
  EXPECT_EQ(tokens->first->as<double>()[0], 5);
  EXPECT_EQ(tokens->second->as<double>()[4], 50);
  EXPECT_EQ(reduced(ReductionKind::kMedian)->first->as<double>()[0], 6);
  const SharedMoments owners = reduced(ReductionKind::kOwner);
  EXPECT_EQ(owners->first->as<double>()[0], 8);
  EXPECT_EQ(owners->updates, 30);
}

TEST_F(ReductionTest, TheSumIsInNodeOrderWhateverTheArrivals) {
  // 1e16 + 1 + 1 is 1e16 in double when added from the left, 1e16 + 2 when the ones meet first.
  const double values[] = {1e16, 1, 1};
  std::vector<int> order = {0, 1, 2};
  do {
    Reduction r({}, world, {0, 1, 2});
    for (const int n : order) r.Add(n, {Filled(*table, 0, values[n])}, 1);
    EXPECT_EQ(First(r.Finish(1).world, 0), ((1e16 + 1) + 1) / 3);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(ReductionTest, SharedUploadsAreFreedOnceAdded) {
  Reduction r({}, world, {0, 1, 2});
  std::vector<std::weak_ptr<const Buffer>> uploads;
  for (const int n : {2, 0, 1}) {
    NodeBlock block = Filled(*table, 0, n);
    uploads.push_back(block.data);
    r.Add(n, {std::move(block)}, 1);
  }
  for (const auto& upload : uploads) EXPECT_TRUE(upload.expired());
}

TEST_F(ReductionTest, MisuseIsRefused) {
  Reduction r({}, world, {0, 2});
  EXPECT_THROW(r.Add(1, {}, 1), std::logic_error);
  EXPECT_THROW(r.Add(0, {}, 0), std::invalid_argument);
  EXPECT_THROW(r.Add(0, {}, 1, 0), std::invalid_argument);
  Reduction again({}, world, {0, 2});
  again.Add(0, {}, 1);
  EXPECT_THROW(again.Exclude(0), std::logic_error);
  EXPECT_THROW(again.Finish(1), std::logic_error);
}

}  // namespace
}  // namespace spes::trainer
