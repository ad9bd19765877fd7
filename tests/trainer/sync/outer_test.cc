#include "trainer/sync/outer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "tests/trainer/protocol/fake_node.h"

namespace spes::trainer {
namespace {

std::shared_ptr<const BlockTable> OneBlock(DType dtype) {
  return std::make_shared<BlockTable>(
      dtype, std::vector<BlockSpec>{
                 MakeBlock(dtype, BlockKind::kShared, 0, -1, {{"a", {3}}, {"b", {2, 2}}})});
}

template <class T>
void Fill(const BlockTable& table, Buffer& buffer, double start, double step) {
  for (const BlockPart& part : table[0].parts) {
    for (std::int64_t i = 0; i < part.elements; ++i) {
      buffer.as<T>()[static_cast<std::size_t>(part.offset + i)] = static_cast<T>(start);
      start += step;
    }
  }
}

// Nodes whose mean is always 1 below the world, so that Δ = 1 each time. By hand, with μ = 0.9 and
// lr = 0.7: v = 1, 1.9, 2.71, 3.439; the world falls by 0.7 (1 + 0.9 v) = 1.33, 1.897, 2.4073,
// 2.86657.
TEST(OuterOptimizer, ConstantPseudoGradientsFollowTheHistoryByHand) {
  const auto table = OneBlock(DType::kFloat64);
  const OuterConfig diloco{.nesterov = true, .lr = 0.7, .momentum = 0.9};
  OuterOptimizer optimizer(table);
  EXPECT_EQ(optimizer.StateBytes(), 0);
  auto world = std::make_shared<const Buffer>([&] {
    Buffer buffer = table->Allocate(0);
    Fill<double>(*table, buffer, 10, 0);
    return buffer;
  }());
  for (const double expected : {10 - 1.33, 8.67 - 1.897, 6.773 - 2.4073, 4.3657 - 2.86657}) {
    Buffer reduced = world->Clone();
    for (const BlockPart& part : (*table)[0].parts) {
      for (std::int64_t i = 0; i < part.elements; ++i) {
        reduced.as<double>()[static_cast<std::size_t>(part.offset + i)] -= 1;
      }
    }
    world = optimizer.Step(diloco, 0, *world, reduced);
    EXPECT_NEAR(world->as<double>()[0], expected, 1e-12);
    EXPECT_EQ(world->as<double>()[2], world->as<double>()[0]);
    EXPECT_EQ(world->as<double>()[8], world->as<double>()[0]);  // the second part
  }
  EXPECT_EQ(optimizer.StateBytes(), 16 * 8);
  for (const std::size_t padding : {3U, 7U, 12U, 15U}) {
    EXPECT_EQ(world->as<double>()[padding], 0);
  }
}

template <class T>
class PlainStep : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(PlainStep, Types);

TYPED_TEST(PlainStep, IsTheMean) {
  using T = TypeParam;
  const auto table = OneBlock(sizeof(T) == 4 ? DType::kFloat32 : DType::kFloat64);
  OuterOptimizer optimizer(table);
  Buffer world = table->Allocate(0), reduced = table->Allocate(0);
  const double tolerance = sizeof(T) == 4 ? 1e-7 : 1e-12;
  for (int round = 0; round < 3; ++round) {
    Fill<T>(*table, world, 1.0 / 3 + round, -0.37);
    Fill<T>(*table, reduced, 0.7 - round, 0.011);
    const SharedBuffer result =
        optimizer.Step({.nesterov = true, .lr = 1, .momentum = 0}, 0, world, reduced);
    for (std::size_t i = 0; i < result->template as<T>().size(); ++i) {
      EXPECT_NEAR(result->template as<T>()[i], reduced.as<T>()[i], tolerance);
    }
  }
}

TEST(OuterOptimizer, EachBlockHasItsOwnVelocity) {
  const auto table = MakeTinyTable(1, 2);
  const World world = MakeTinyWorld(table), nodes = MakeTinyWorld(table, 0);
  const OuterConfig config{.nesterov = true, .lr = 1, .momentum = 0.5};
  OuterOptimizer optimizer(table);
  const auto step = [&](BlockId id) {
    const auto i = static_cast<std::size_t>(id);
    return optimizer.Step(config, id, *world.blocks[i].data, *nodes.blocks[i].data)
        ->as<double>()[0];
  };
  EXPECT_EQ(step(1), 2 - 1.5);
  EXPECT_EQ(step(1), 2 - 1.75);
  EXPECT_EQ(step(2), 3 - 1.5);
  EXPECT_THROW(optimizer.Step(config, 1, *world.blocks[0].data, *nodes.blocks[1].data),
               std::invalid_argument);
}

TEST(OuterOptimizer, SettingsOutOfRangeAreRefused) {
  EXPECT_NO_THROW(Validate(OuterConfig{}));
  EXPECT_THROW(Validate({.lr = 0}), std::invalid_argument);
  EXPECT_THROW(Validate({.lr = INFINITY}), std::invalid_argument);
  EXPECT_THROW(Validate({.momentum = 1}), std::invalid_argument);
  EXPECT_THROW(Validate({.momentum = -0.1}), std::invalid_argument);
  EXPECT_THROW(Validate({.momentum = NAN}), std::invalid_argument);
}

}  // namespace
}  // namespace spes::trainer
