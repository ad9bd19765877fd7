#include "trainer/sync/reduction.h"

#include <gtest/gtest.h>

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
  Allocation allocation = MakeAllocation(AllocationKind::kContiguous, *table, 3);
  double First(const World& w, BlockId id) const {
    return w.blocks[static_cast<std::size_t>(id)].data->as<double>()[0];
  }
};

TEST_F(ReductionTest, MeanOfSharedBlocksWeightedAndOwnersCopyOfExperts) {
  Reduction r(allocation, world, {0, 1, 2});
  const NodeBlock expert = Filled(*table, 2, 9);
  r.Add(1, {Filled(*table, 0, 4), expert}, 3);
  r.Add(0, {Filled(*table, 0, 8), Filled(*table, 1, 7)}, 1);
  EXPECT_EQ(r.pending(), 1);
  r.Exclude(2);
  const Reduction::Result result = r.Finish(5);
  EXPECT_EQ(First(result.world, 0), (8 * 1 + 4 * 3) / 4.0);
  EXPECT_EQ(result.world.blocks[2].data, expert.data);  // not a copy
  EXPECT_EQ(result.world.blocks[0].version, 5);
  EXPECT_EQ(result.world.blocks[3].version, 0);  // its owner did not come
  EXPECT_EQ(result.world.blocks[3].data, world.blocks[3].data);
  EXPECT_EQ(result.source, (std::vector<int>{Reduction::kComputed, 0, 1, Reduction::kUnchanged}));
}

TEST_F(ReductionTest, TheSumIsInNodeOrderWhateverTheArrivals) {
  // 1e16 + 1 + 1 is 1e16 in double when added from the left, 1e16 + 2 when the ones meet first.
  const double values[] = {1e16, 1, 1};
  std::vector<int> order = {0, 1, 2};
  do {
    Reduction r(allocation, world, {0, 1, 2});
    for (const int n : order) r.Add(n, {Filled(*table, 0, values[n])}, 1);
    EXPECT_EQ(First(r.Finish(1).world, 0), ((1e16 + 1) + 1) / 3);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(ReductionTest, SharedUploadsAreFreedOnceAdded) {
  Reduction r(allocation, world, {0, 1, 2});
  std::vector<std::weak_ptr<const Buffer>> uploads;
  for (const int n : {2, 0, 1}) {
    NodeBlock block = Filled(*table, 0, n);
    uploads.push_back(block.data);
    r.Add(n, {std::move(block)}, 1);
  }
  for (const auto& upload : uploads) EXPECT_TRUE(upload.expired());
}

TEST_F(ReductionTest, MisuseIsRefused) {
  Reduction r(allocation, world, {0, 2});
  EXPECT_THROW(r.Add(1, {}, 1), std::logic_error);
  EXPECT_THROW(r.Add(0, {}, 0), std::invalid_argument);
  EXPECT_THROW(r.Add(0, {Filled(*table, 2, 1)}, 1), std::logic_error);  // node 1's expert
  Reduction again(allocation, world, {0, 2});
  again.Add(0, {}, 1);
  EXPECT_THROW(again.Exclude(0), std::logic_error);
  EXPECT_THROW(again.Finish(1), std::logic_error);
}

}  // namespace
}  // namespace spes::trainer
