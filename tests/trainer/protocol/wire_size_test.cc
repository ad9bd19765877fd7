#include "trainer/protocol/wire_size.h"

#include <gtest/gtest.h>

#include "tests/trainer/protocol/fake_node.h"

namespace spes::trainer {
namespace {

TEST(WireSize, IsTheFrameItsFieldsAndTheElements) {
  const auto table = MakeTinyTable(1, 2);  // blocks of 5, 12 and 12 elements of 8 bytes
  const World world = MakeTinyWorld(table);
  const auto bytes = [&](const Message& m) { return WireBytes(m, *table); };
  // 33: the frame's header and the message's kind.
  const RoundOrder order{{1, 1, 2}};
  EXPECT_EQ(bytes(Join{"abc", "", 1, 2, 3, {0, 0}, {1}}),
            33 + (4 + 3) + 4 + 8 + 8 + 4 + (4 + 2 * 4) + (4 + 4));
  EXPECT_EQ(bytes(Reject{RejectReason::kCorrupt, 1, "why"}), 33 + 1 + 4 + (4 + 3));
  EXPECT_EQ(bytes(Applied{1, 2, 3}), 33 + 4 + 16);
  EXPECT_EQ(bytes(Leave{"bye"}), 33 + 4 + 3);
  EXPECT_EQ(bytes(Admit{{{0, 0, world.blocks[0].data}}, order}),
            33 + 4 + (24 + 5 * 8) + (16 + 5) + 8 + 1 + 8 + 8);
  EXPECT_EQ(bytes(Update{1, 0, false, {{1, 1, world.blocks[1].data}}, order}),
            33 + 4 + 8 + 1 + 4 + (24 + 12 * 8) + 1 + (16 + 5));
  EXPECT_EQ(bytes(Update{1, 0, false, {}, std::nullopt}), 33 + 4 + 8 + 1 + 4 + 1);
  Offer offer;
  offer.span = order.span;
  offer.steps.resize(2);
  offer.routing = {.tokens = 1, .routed = {{1, 2}}, .entropy_sum = {0.5}};
  offer.blocks = {{2, 0, world.blocks[2].data}};
  EXPECT_EQ(bytes(offer),
            33 + 16 + 3 * 8 + (4 + 2 * 80) + (8 + 4 + 4 + (4 + 16) + 8) + (4 + 24 + 12 * 8));
}

}  // namespace
}  // namespace spes::trainer
