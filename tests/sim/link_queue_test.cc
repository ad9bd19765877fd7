#ifdef SPES_NS3
#include "sim/ns3/link_queue.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace spes::sim {
namespace {

constexpr int kPacket = 1000, kCount = 400'000;

// `count` packets one after the other, each standing for `stands_for` others.
struct Losses {
  double share = 0;    // of the packets, as they are counted
  double per_row = 0;  // packets that are lost in a row, on average, not what they stand for
};

Losses Lose(double loss, double burst, int stands_for) {
  const Link link{
      .name = "", .rate = RateCurve(8e9), .loss = loss, .loss_burst = burst, .queue_bytes = 1e6};
  LinkQueue queue(link, kPacket, 1);
  int lost = 0, rows = 0;
  bool before = false;
  for (int i = 0; i < kCount; ++i) {
    const bool arrives =
        queue.Send(std::int64_t{i} * kPacket, kPacket, false, stands_for).has_value();
    lost += !arrives;
    rows += !arrives && !before;
    before = !arrives;
  }
  return {static_cast<double>(queue.dropped_packets()) / kCount / stands_for,
          static_cast<double>(lost) / rows};
}

TEST(LinkQueue, LosesItsShare) {
  EXPECT_NEAR(Lose(0.01, 1, 1).share, 0.01, 0.001);
  const Losses bursts = Lose(0.01, 8, 1);
  EXPECT_NEAR(bursts.share, 0.01, 0.0015);
  EXPECT_NEAR(bursts.per_row, 8, 0.5);
}

// As often, and as many, as of the packets that each stands for.
TEST(LinkQueue, LargePacketsLoseTheSame) {
  EXPECT_NEAR(Lose(0.01, 1, 4).share, 0.01, 0.001);
  const Losses bursts = Lose(0.01, 8, 4);
  EXPECT_NEAR(bursts.share, 0.01, 0.0015);
  EXPECT_NEAR(bursts.per_row, 2, 0.2);
  const Losses short_bursts = Lose(0.01, 2, 4);
  EXPECT_NEAR(short_bursts.share, 0.01, 0.0015);
  EXPECT_NEAR(short_bursts.per_row, 1, 0.1);
}

}  // namespace
}  // namespace spes::sim
#endif  // SPES_NS3
