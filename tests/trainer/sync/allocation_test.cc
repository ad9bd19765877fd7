#include "trainer/sync/allocation.h"

#include <gtest/gtest.h>

#include "tests/trainer/protocol/fake_node.h"

namespace spes::trainer {
namespace {

std::string Refusal(int experts, int nodes) {
  try {
    MakeAllocation(AllocationKind::kContiguous, *MakeTinyTable(1, experts), nodes);
    return "";
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
}

TEST(Allocation, ContiguousAndRoundRobin) {
  const auto table = MakeTinyTable(2, 4);  // per layer: one shared block, four experts
  const Allocation contiguous = MakeAllocation(AllocationKind::kContiguous, *table, 2);
  EXPECT_EQ(contiguous.blocks(0), (std::vector<BlockId>{0, 1, 2, 5, 6, 7}));
  EXPECT_EQ(contiguous.blocks(1), (std::vector<BlockId>{0, 3, 4, 5, 8, 9}));
  EXPECT_EQ(contiguous.trainers(0), (std::vector<int>{0, 1}));
  const Allocation turns = MakeAllocation(AllocationKind::kRoundRobin, *table, 2);
  EXPECT_EQ(turns.blocks(0), (std::vector<BlockId>{0, 1, 3, 5, 6, 8}));
  EXPECT_TRUE(turns.Trains(1, 2));
  EXPECT_FALSE(turns.Trains(0, 2));
  EXPECT_EQ(contiguous.TrainableElements(0, *table), 2 * 5 + 4 * 12);
}

TEST(Allocation, EveryExpertHasOneOwnerInRange) {
  for (int nodes = 1; nodes <= 8; ++nodes) {
    for (const auto kind : {AllocationKind::kContiguous, AllocationKind::kRoundRobin}) {
      const auto table = MakeTinyTable(1, 3 * nodes);
      const Allocation a = MakeAllocation(kind, *table, nodes);
      for (BlockId id = 1; id < table->size(); ++id) {
        ASSERT_EQ(a.trainers(id).size(), 1U);
        EXPECT_LT(a.trainers(id)[0], nodes);
      }
      for (int n = 0; n < nodes; ++n) EXPECT_EQ(a.blocks(n).size(), 4U);
    }
  }
}

TEST(Allocation, NumbersThatDoNotFitNameThoseThatWould) {
  EXPECT_EQ(Refusal(16, 5),
            "16 experts per layer cannot be shared out evenly among 5 nodes: use 1, 2, 4, 8, 16 "
            "nodes, or 15 or 20 experts");
  EXPECT_EQ(
      Refusal(4, 6),
      "4 experts per layer cannot be shared out evenly among 6 nodes: use 1, 2, 4 nodes, or 6 "
      "experts");
  EXPECT_EQ(Refusal(4, 0), "0 nodes: at least 1 is needed");
  EXPECT_EQ(Refusal(0, 3), "");  // a dense model
}

}  // namespace
}  // namespace spes::trainer
