#include "sim/ns3/sequence_tracker.h"

#include <gtest/gtest.h>

namespace spes::sim {
namespace {

TEST(SequenceTracker, NewDataIsNotARetransmission) {
  SequenceTracker tracker;
  EXPECT_EQ(tracker.Sent(1, 1448), 0);
  EXPECT_EQ(tracker.Sent(1449, 1448), 0);
}

TEST(SequenceTracker, OldDataIs) {
  SequenceTracker tracker;
  tracker.Sent(1, 1448);
  tracker.Sent(1449, 1448);
  EXPECT_EQ(tracker.Sent(1, 1448), 1448);
  EXPECT_EQ(tracker.Sent(1449, 1448), 1448);
  EXPECT_EQ(tracker.Sent(2000, 1448), 897) << "the rest is new";
  EXPECT_EQ(tracker.Sent(3448, 100), 0);
}

// Sequence numbers come round every 4 GiB.
TEST(SequenceTracker, TransfersBeyond32Bits) {
  SequenceTracker tracker;
  std::int64_t sent = 0, again = 0, retransmitted = 0;
  while (sent < 10'000'000'000) {
    const std::uint32_t bytes = 65'000;
    again += tracker.Sent(static_cast<std::uint32_t>(sent), bytes);
    sent += bytes;
    if (sent % 1'300'000 == 0) {
      retransmitted += bytes;
      again += tracker.Sent(static_cast<std::uint32_t>(sent - bytes), bytes);
    }
  }
  EXPECT_GT(retransmitted, 400'000'000);
  EXPECT_EQ(again, retransmitted);
}

}  // namespace
}  // namespace spes::sim
