// Merging without reference values; those are in tests/golden.
#include "trainer/sync/merge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

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
  const World merged = MergeExperts(world, 0.5, {.donors = 1}, 3);
  const auto x = merged.blocks[1].data->as<double>();
  EXPECT_DOUBLE_EQ(x[1], 0.5 * (0 + .1));
  EXPECT_DOUBLE_EQ(x[8 + 0], 0.5 * (1 + 0));  // towards expert 1's v1, not expert 2's
  EXPECT_DOUBLE_EQ(x[16 + 2], 0.5 * (0 + 1));
  EXPECT_EQ(merged.blocks[1].version, 3);
  EXPECT_EQ(merged.blocks[0].data, world.blocks[0].data);
}

TEST(Merge, AlphaMayFallOtherwise) {
  const MergeConfig cosine{.alpha = 0.1, .length = 100, .decay = MergeDecay::kCosine};
  EXPECT_DOUBLE_EQ(MergeAlpha(cosine, 0), 0.1);
  EXPECT_DOUBLE_EQ(MergeAlpha(cosine, 50), 0.05);
  EXPECT_DOUBLE_EQ(MergeAlpha(cosine, 25), 0.1 * (1 + std::sqrt(0.5)) / 2);
  EXPECT_EQ(MergeAlpha(cosine, 100), 0);
  const MergeConfig constant{.alpha = 0.1, .length = 100, .decay = MergeDecay::kConstant};
  EXPECT_EQ(MergeAlpha(constant, 99), 0.1);
  EXPECT_EQ(MergeAlpha(constant, 100), 0);
}

// One layer of `experts` experts of 4 hidden units, width 3, and their router; all values random.
World RandomWorld(int experts, DType dtype, unsigned seed) {
  std::vector<BlockSpec> blocks = {
      MakeBlock(dtype, BlockKind::kShared, 0, -1, {{"layers.0.router", {experts, 3}}})};
  for (int e = 0; e < experts; ++e) {
    const std::string name = "layers.0.experts." + std::to_string(e) + ".";
    blocks.push_back(
        MakeBlock(dtype, BlockKind::kExpert, 0, e,
                  {{name + "w1", {4, 3}}, {name + "v1", {4, 3}}, {name + "w2", {4, 3}}}));
  }
  const auto table = std::make_shared<BlockTable>(dtype, std::move(blocks));
  World world{table, {}};
  std::mt19937 random(seed);
  for (BlockId id = 0; id < table->size(); ++id) {
    auto buffer = std::make_shared<Buffer>(table->Allocate(id));
    for (const BlockPart& part : (*table)[id].parts) {
      for (std::int64_t i = 0; i < part.elements; ++i) {
        const auto at = static_cast<std::size_t>(part.offset + i);
        const double x = static_cast<double>(random()) / 2.1e9 - 1;
        if (dtype == DType::kFloat32) {
          buffer->as<float>()[at] = static_cast<float>(x);
        } else {
          buffer->as<double>()[at] = x;
        }
      }
    }
    world.blocks.push_back({0, std::move(buffer)});
  }
  return world;
}

std::vector<double> PartOf(const World& world, BlockId id, std::size_t part) {
  const BlockPart& p = (*world.table)[id].parts[part];
  const auto all = world.blocks[static_cast<std::size_t>(id)].data->as<double>();
  return {all.begin() + p.offset, all.begin() + p.offset + p.elements};
}

TEST(Merge, ExpertsMayBeComparedByEachOfTheirMatricesOrTheRouter) {
  const World world = RandomWorld(3, DType::kFloat64, 1);
  const auto values = [&](int expert, MergeSimilarity kind) {
    const BlockId id = 1 + expert;
    if (kind == MergeSimilarity::kW1) return PartOf(world, id, 0);
    if (kind == MergeSimilarity::kW2) return PartOf(world, id, 2);
    std::vector<double> x;
    if (kind == MergeSimilarity::kRouter) {
      const std::vector<double> router = PartOf(world, 0, 0);
      return std::vector<double>(router.begin() + 3 * expert, router.begin() + 3 * (expert + 1));
    }
    for (std::size_t part = 0; part < 3; ++part) {
      const std::vector<double> more = PartOf(world, id, part);
      x.insert(x.end(), more.begin(), more.end());
    }
    return x;
  };
  for (const auto kind : {MergeSimilarity::kW1, MergeSimilarity::kW2, MergeSimilarity::kAll,
                          MergeSimilarity::kRouter}) {
    const std::vector<double> s = ExpertSimilarity(world, 0, kind);
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) {
        const std::vector<double> a = values(i, kind), b = values(j, kind);
        const auto dot = [](const std::vector<double>& x, const std::vector<double>& y) {
          return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
        };
        EXPECT_NEAR(s[static_cast<std::size_t>(3 * i + j)],
                    dot(a, b) / std::sqrt(dot(a, a) * dot(b, b)), 1e-14);
      }
    }
  }
  EXPECT_THROW(ExpertSimilarity(MakeTinyWorld(MakeTinyTable(1, 2)), 0, MergeSimilarity::kRouter),
               std::invalid_argument);
}

TEST(Merge, SimilarityChoosesTheDonors) {
  World world = RandomWorld(3, DType::kFloat64, 1);
  auto router = std::make_shared<Buffer>(world.blocks[0].data->Clone());
  for (std::size_t i = 0; i < 3; ++i) {  // by the router's rows expert 0 is like expert 2
    router->as<double>()[6 + i] = router->as<double>()[i];
    router->as<double>()[3 + i] = -router->as<double>()[i];
  }
  world.blocks[0].data = router;
  const World merged =
      MergeExperts(world, 0.5, {.donors = 1, .similarity = MergeSimilarity::kRouter}, 1);
  EXPECT_NEAR(PartOf(merged, 1, 1)[5], (PartOf(world, 1, 1)[5] + PartOf(world, 3, 1)[5]) / 2,
              1e-15);
}

TEST(Merge, ReleasedModeMixesTheMatricesOfDifferentExperts) {
  // Up to ten experts the order of names is that of numbers.
  const World ten = RandomWorld(10, DType::kFloat64, 4);
  EXPECT_EQ(WorldHash(MergeExperts(ten, 0.3, {.mode = MergeMode::kReleased}, 1)),
            WorldHash(MergeExperts(ten, 0.3, {}, 1)));
  const int experts = 12;
  const std::vector<int> by_name = {0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9};
  const World world = RandomWorld(experts, DType::kFloat64, 5);
  const auto nearest = NearestExperts(ExpertSimilarity(world, 0, MergeSimilarity::kW1), experts, 1);
  const World merged = MergeExperts(world, 0.5, {.donors = 1, .mode = MergeMode::kReleased}, 1);
  for (std::size_t place = 0; place < 12; ++place) {
    const auto donor = static_cast<std::size_t>(nearest[place][0]);
    for (std::size_t part = 0; part < 3; ++part) {
      const int expert = part == 0 ? static_cast<int>(place) : by_name[place];
      const int towards = part == 0 ? static_cast<int>(donor) : by_name[donor];
      const std::vector<double> own = PartOf(world, 1 + expert, part),
                                other = PartOf(world, 1 + towards, part),
                                now = PartOf(merged, 1 + expert, part);
      for (std::size_t i = 0; i < own.size(); ++i) {
        EXPECT_NEAR(now[i], (own[i] + other[i]) / 2, 1e-15);
      }
    }
  }
}

// Expert `to` becomes expert `from` with its hidden units in another order.
template <class T>
void CopyPermuted(World& world, BlockId from, BlockId to, const std::vector<std::size_t>& units) {
  auto buffer = std::make_shared<Buffer>(world.table->Allocate(to));
  const auto source = world.blocks[static_cast<std::size_t>(from)].data->as<T>();
  for (const BlockPart& part : (*world.table)[to].parts) {
    const auto at = static_cast<std::size_t>(part.offset);
    for (std::size_t i = 0; i < 12; ++i) {
      buffer->as<T>()[at + i] = source[at + units[i / 3] * 3 + i % 3];
    }
  }
  world.blocks[static_cast<std::size_t>(to)].data = std::move(buffer);
}

TEST(Merge, AlignedDonorsThatArePermutationsChangeNothing) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    World world = RandomWorld(4, dtype, 6);
    const std::vector<std::vector<std::size_t>> orders = {{2, 0, 3, 1}, {3, 2, 1, 0}, {1, 2, 3, 0}};
    for (BlockId id = 2; id <= 4; ++id) {
      const auto& order = orders[static_cast<std::size_t>(id - 2)];
      if (dtype == DType::kFloat32) {
        CopyPermuted<float>(world, 1, id, order);
      } else {
        CopyPermuted<double>(world, 1, id, order);
      }
    }
    EXPECT_NE(WorldHash(MergeExperts(world, 0.3, {}, 1)), WorldHash(world));
    EXPECT_EQ(WorldHash(MergeExperts(world, 0.3, {.mode = MergeMode::kAligned}, 1)),
              WorldHash(world));
  }
}

TEST(Merge, AlignedMovesTowardsTheBestOrderOfTheDonorsUnits) {
  const World world = RandomWorld(2, DType::kFloat64, 7);
  const World merged = MergeExperts(world, 0.5, {.mode = MergeMode::kAligned}, 1);
  for (const auto& [own, other] : {std::pair<BlockId, BlockId>{1, 2}, {2, 1}}) {
    std::vector<std::size_t> order = {0, 1, 2, 3}, best;
    double highest = -1e9;
    do {
      double product = 0;
      for (std::size_t part = 0; part < 3; ++part) {
        const std::vector<double> a = PartOf(world, own, part), b = PartOf(world, other, part);
        for (std::size_t i = 0; i < 12; ++i) product += a[i] * b[order[i / 3] * 3 + i % 3];
      }
      if (product > highest) {
        highest = product;
        best = order;
      }
    } while (std::next_permutation(order.begin(), order.end()));
    for (std::size_t part = 0; part < 3; ++part) {
      const std::vector<double> a = PartOf(world, own, part), b = PartOf(world, other, part),
                                now = PartOf(merged, own, part);
      for (std::size_t i = 0; i < 12; ++i) {
        EXPECT_NEAR(now[i], (a[i] + b[best[i / 3] * 3 + i % 3]) / 2, 1e-15);
      }
    }
  }
}

TEST(Merge, OneExpertIsLeftAlone) {
  const World world = MakeTinyWorld(MakeTinyTable(2, 1));
  const World merged = MergeExperts(world, 0.5, {}, 3);
  EXPECT_EQ(merged.blocks[1].data, world.blocks[1].data);
}

TEST(Merge, AZeroExpertIsSimilarToNone) {
  const auto table = MakeTinyTable(1, 2);
  World world = MakeTinyWorld(table);
  world.blocks[1].data = std::make_shared<Buffer>(table->Allocate(1));
  EXPECT_EQ(ExpertSimilarity(world, 0, MergeSimilarity::kW1), (std::vector<double>{1, 0, 0, 1}));
}

}  // namespace
}  // namespace spes::trainer
