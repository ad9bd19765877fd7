#include "trainer/model/initial_world.h"

#include <gtest/gtest.h>

#include <cmath>

namespace spes::trainer {
namespace {

std::span<const float> Values(const World& world, const char* name) {
  const auto at = world.table->Find(name).value();
  const BlockPart& part = (*world.table)[at.block].parts[static_cast<std::size_t>(at.part)];
  return world.blocks[static_cast<std::size_t>(at.block)].data->as<float>().subspan(
      static_cast<std::size_t>(part.offset), static_cast<std::size_t>(part.elements));
}

TEST(InitialWorld, IsTruncatedNormal) {
  const ModelConfig config{.vocabulary = 2000, .layers = 1, .init_std = 0.05};
  const World world = MakeInitialWorld(config, MakeBlockTable(config), 3);
  const auto values = Values(world, "embed");
  double sum = 0, square = 0, fourth = 0, largest = 0;
  std::int64_t inside = 0;
  for (const float value : values) {
    const double x = static_cast<double>(value) / 0.05;
    sum += x;
    square += x * x;
    fourth += x * x * x * x;
    largest = std::max(largest, std::abs(x));
    inside += std::abs(x) < 1;
  }
  const double n = static_cast<double>(values.size());  // 256,000
  EXPECT_NEAR(sum / n, 0, 5 / std::sqrt(n));
  // Moments of a normal variable truncated at ±3: 1 − 6 φ(3) / Z, 3 − (54 + 18) φ(3) / Z with
  // Z = 2 Φ(3) − 1.
  EXPECT_NEAR(square / n, 0.973337, 0.01);
  EXPECT_NEAR(fourth / n, 2.680049, 0.06);
  EXPECT_NEAR(static_cast<double>(inside) / n, 0.684536, 0.005);
  EXPECT_LE(largest, 3 * (1 + 1e-6));
  EXPECT_GT(largest, 2.95);
}

TEST(InitialWorld, NormsAreOneAndPaddingIsZero) {
  const ModelConfig config{
      .layers = 1, .width = 12, .heads = 2, .kv_heads = 2, .experts = 2, .expert_width = 3};
  const World world = MakeInitialWorld(config, MakeBlockTable(config), 1);
  for (const char* name : {"final_norm", "layers.0.attn_norm", "layers.0.q_norm"}) {
    for (const float x : Values(world, name)) EXPECT_EQ(x, 1);
  }
  const BlockId expert = world.table->Expert(0, 1).value();
  const BlockSpec& spec = (*world.table)[expert];
  ASSERT_GT(spec.buffer_elements, spec.elements);  // 36 elements, padded to 48
  const auto buffer = world.blocks[static_cast<std::size_t>(expert)].data->as<float>();
  for (std::size_t i = 36; i < 48; ++i) EXPECT_EQ(buffer[i], 0);
}

TEST(InitialWorld, DependsOnSeedAndNameAlone) {
  const ModelConfig small{.layers = 1, .experts = 2};
  const ModelConfig large{.layers = 3, .experts = 8};
  const World a = MakeInitialWorld(small, MakeBlockTable(small), 7);
  const World b = MakeInitialWorld(large, MakeBlockTable(large), 7);
  const World c = MakeInitialWorld(small, MakeBlockTable(small), 8);
  const auto equal = [](std::span<const float> x, std::span<const float> y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end());
  };
  for (const char* name : {"embed", "layers.0.q", "layers.0.experts.1.v1", "lm_head"}) {
    EXPECT_TRUE(equal(Values(a, name), Values(b, name))) << name;
    EXPECT_FALSE(equal(Values(a, name), Values(c, name))) << name;
  }
  EXPECT_FALSE(equal(Values(a, "embed"), Values(a, "lm_head")));
  EXPECT_FALSE(equal(Values(a, "layers.0.experts.0.w1"), Values(a, "layers.0.experts.1.w1")));
  EXPECT_EQ(WorldHash(a), WorldHash(MakeInitialWorld(small, MakeBlockTable(small), 7)));
}

}  // namespace
}  // namespace spes::trainer
