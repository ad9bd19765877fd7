// What poisoned nodes send.
#include "trainer/protocol/poison.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/trainer/protocol/cluster.h"
#include "trainer/sync/block_values.h"

namespace spes::trainer {
namespace {

// A block with padding between its parts; the published value is 1, the node's own 3.
struct Block {
  std::shared_ptr<const BlockTable> table = std::make_shared<BlockTable>(
      DType::kFloat64, std::vector<BlockSpec>{MakeBlock(DType::kFloat64, BlockKind::kShared, 0, -1,
                                                        {{"a", {3}}, {"b", {50, 100}}})});
  SharedBuffer start = Filled(0), published = Filled(1), own = Filled(3);

  SharedBuffer Filled(double x) const {
    auto buffer = std::make_shared<Buffer>(table->Allocate(0));
    for (const BlockPart& part : (*table)[0].parts) {
      std::fill_n(buffer->as<double>().begin() + part.offset, part.elements, x);
    }
    return buffer;
  }
  SharedBuffer Sent(PoisonConfig config, std::int32_t round = 1, bool gradient = false) const {
    return Poisoned(config, round, 0, *table, own, gradient ? nullptr : published.get(), start);
  }
  void ExpectAll(double x, const SharedBuffer& sent) const {
    const auto expected = Filled(x);
    for (std::size_t i = 0; i < sent->as<double>().size(); ++i) {
      ASSERT_DOUBLE_EQ(sent->as<double>()[i], expected->as<double>()[i]) << i;
    }
  }
};

TEST(Poison, EachKindDoesWhatItSays) {
  const Block b;
  EXPECT_EQ(b.Sent({}), b.own);
  b.ExpectAll(1 - 2 * 2, b.Sent({.kind = PoisonKind::kSignFlip, .factor = 2}));
  b.ExpectAll(1 + 5 * 2, b.Sent({.kind = PoisonKind::kScale, .factor = 5}));
  EXPECT_EQ(b.Sent({.kind = PoisonKind::kStale}), b.start);
  const SharedBuffer nan = b.Sent({.kind = PoisonKind::kNan});
  EXPECT_TRUE(std::isnan(nan->as<double>()[0]));
  EXPECT_EQ(nan->as<double>()[1], 3);
  b.ExpectAll(3, b.own);  // none of them has changed what the node has
}

TEST(Poison, AGradientIsAllUpdate) {
  const Block b;
  b.ExpectAll(-3, b.Sent({.kind = PoisonKind::kSignFlip}, 1, true));
  b.ExpectAll(30, b.Sent({.kind = PoisonKind::kScale, .factor = 10}, 1, true));
}

TEST(Poison, NoiseIsNormalAndOfTheUpdatesSize) {
  const Block b;
  const PoisonConfig config{.kind = PoisonKind::kNoise, .factor = 4, .seed = 7};
  const SharedBuffer sent = b.Sent(config);
  double sum = 0, square = 0;
  int beyond = 0;  // one standard deviation
  const BlockPart& part = (*b.table)[0].parts[1];
  for (std::int64_t i = 0; i < part.elements; ++i) {
    const double noise = sent->as<double>()[static_cast<std::size_t>(part.offset + i)] - 3;
    sum += noise;
    square += noise * noise;
    beyond += std::abs(noise) > 8;
  }
  const auto n = static_cast<double>(part.elements);
  EXPECT_NEAR(sum / n, 0, 5 * 8 / std::sqrt(n));
  EXPECT_NEAR(std::sqrt(square / n), 4 * 2, 0.3);
  EXPECT_NEAR(beyond / n, 0.3173, 0.03);
  std::int64_t inside = 0;
  for (const double x : sent->as<double>()) inside += x != 0;
  EXPECT_EQ(inside, (*b.table)[0].elements) << "padding stays zero";

  b.ExpectAll(0, b.start);
  const auto same = [&](const SharedBuffer& other) {
    return SameValues((*b.table)[0], DType::kFloat64, *sent, *other);
  };
  EXPECT_TRUE(same(b.Sent(config)));
  EXPECT_FALSE(same(b.Sent(config, 2)));
  EXPECT_FALSE(same(b.Sent({.kind = PoisonKind::kNoise, .factor = 4, .seed = 8})));
}

TEST(Poison, BeginsAfterItsRounds) {
  const Block b;
  const PoisonConfig config{.kind = PoisonKind::kScale, .factor = 9, .after = 2};
  EXPECT_EQ(b.Sent(config, 2), b.own);
  EXPECT_NE(b.Sent(config, 3), b.own);
}

// Whose lie was published goes on from it, as everyone does.
TEST(Poison, APeerAdoptsWhatWasPublishedOfIt) {
  PeerConfig peer;
  peer.poison = {.kind = PoisonKind::kSignFlip};
  Cluster c(1, {}, 2, peer);  // one node, which adds 1 in each of 3 steps of 2 rounds
  c.Run();
  ASSERT_TRUE(c.coordinator->finished());
  EXPECT_EQ(c.WorldValue(0), 1 - 3 - 3);
}

TEST(Poison, WorksThroughCodes) {
  PeerConfig peer;
  peer.poison = {.kind = PoisonKind::kScale, .factor = 2};
  peer.codec = {.kind = CodecKind::kBf16, .differences = true};
  CoordinatorConfig config;
  config.offered = peer.codec;
  Cluster c(1, config, 2, peer);
  c.Run();
  EXPECT_EQ(c.WorldValue(0), 1 + 6 + 6);
}

}  // namespace
}  // namespace spes::trainer
