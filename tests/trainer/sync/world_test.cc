#include "trainer/sync/world.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/trainer/protocol/fake_node.h"

namespace spes::trainer {
namespace {

TEST(Block, PartsAreAlignedAndPaddingIsNotCounted) {
  const BlockSpec block = MakeBlock(DType::kFloat32, BlockKind::kExpert, 0, 1,
                                    {{"a", {3, 5}}, {"b", {2}}, {"c", {16}}});
  EXPECT_EQ(block.elements, 15 + 2 + 16);
  EXPECT_EQ(block.parts[1].offset, 16);
  EXPECT_EQ(block.parts[2].offset, 32);
  EXPECT_EQ(block.buffer_elements, 48);
  const BlockTable table(DType::kFloat32, {block});
  EXPECT_EQ(table.Bytes(0), 33 * 4);
  EXPECT_EQ(table.Allocate(0).bytes(), 48 * 4);
}

TEST(Block, TablesFindPartsAndExperts) {
  const auto table = MakeTinyTable(2, 3);
  EXPECT_EQ(table->Expert(1, 2), BlockId{7});
  EXPECT_FALSE(table->Expert(2, 0));
  EXPECT_FALSE(table->Expert(0, 3));
  const auto found = table->Find("layers.1.experts.0.v1");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->block, 5);
  EXPECT_EQ(found->part, 1);
  EXPECT_FALSE(table->Find("layers.1.experts.0"));
  EXPECT_EQ(table->TotalElements(), 2 * (5 + 3 * 12));
  EXPECT_EQ(table->SharedElements(), 10);
  EXPECT_EQ(table->ExpertElements(), 24);
}

TEST(World, HashSeesEveryBitAndNoPadding) {
  const auto table = MakeTinyTable(1, 2);
  const World world = MakeTinyWorld(table);
  EXPECT_EQ(WorldHash(world), WorldHash(MakeTinyWorld(table)));
  EXPECT_EQ(WorldHash(world).size(), 32U);
  World changed = world;
  auto buffer = std::make_shared<Buffer>(world.blocks[1].data->Clone());
  double& value = buffer->as<double>()[0];
  value = std::nextafter(value, 10);
  changed.blocks[1].data = buffer;
  EXPECT_NE(WorldHash(world), WorldHash(changed));
  auto padded = std::make_shared<Buffer>(world.blocks[1].data->Clone());
  padded->as<double>()[7] = 3;  // behind the four elements of w1
  changed.blocks[1].data = padded;
  EXPECT_EQ(WorldHash(world), WorldHash(changed));
}

TEST(World, FiniteMeansEveryValue) {
  Buffer buffer(64 * 4);
  EXPECT_TRUE(AllFinite(DType::kFloat32, buffer));
  for (const float bad :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    buffer.as<float>()[63] = bad;
    EXPECT_FALSE(AllFinite(DType::kFloat32, buffer));
  }
  buffer.as<float>()[63] = std::numeric_limits<float>::max();
  EXPECT_TRUE(AllFinite(DType::kFloat32, buffer));
  EXPECT_TRUE(AllFinite(DType::kFloat64, Buffer(0)));
}

}  // namespace
}  // namespace spes::trainer
