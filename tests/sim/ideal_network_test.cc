#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/network.h"
#include "tests/sim/levels.h"

namespace spes::sim {
namespace {

using namespace std::chrono_literals;

TEST(IdealNetwork, TimeIsLatencyPlusSizeOverRate) {
  const auto network = MakeIdealNetwork(Star(2, {.down_bps = 1e9, .up_bps = 8e6, .rtt = 30ms}), {});
  const FlowResult result = Transfer(*network, {.from = 0, .to = 1, .bytes = 1'000'000});
  EXPECT_EQ(result.end, 1030ms);
  EXPECT_EQ(result.wire_bytes, 1'000'000);
  EXPECT_EQ(result.dropped_packets, 0);
  EXPECT_FALSE(result.rtt_min);
}

TEST(IdealNetwork, SizesBeyond32BitsAreExact) {
  const auto network = MakeIdealNetwork(Star(3, {.down_bps = 8e9, .up_bps = 8e9}), {});
  std::vector<FlowResult> results;
  for (const std::int64_t bytes : {100'000'000'000, 3'000'000'000}) {
    network->Start({.from = 0, .to = 1, .bytes = bytes},
                   [&](const FlowResult& r) { results.push_back(r); });
  }
  while (network->NextEvent()) network->AdvanceTo(kNever);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].delivered_bytes, 3'000'000'000);
  EXPECT_EQ(results[0].end, 6s);
  EXPECT_EQ(results[1].delivered_bytes, 100'000'000'000);
  EXPECT_EQ(results[1].wire_bytes, 100'000'000'000);
  EXPECT_EQ(results[1].end, 103s);
}

TEST(IdealNetwork, ACancelledFlowCountsWhatArrived) {
  const auto network = MakeIdealNetwork(Star(2, {.down_bps = 8e9, .up_bps = 8e9, .rtt = 5ms}), {});
  FlowResult result;
  const FlowId id = network->Start({.from = 0, .to = 1, .bytes = 100'000'000'000},
                                   [&](const FlowResult& r) { result = r; });
  network->AdvanceTo(50'005ms);
  network->Cancel(id);
  network->AdvanceTo(50'005ms);
  EXPECT_EQ(result.delivered_bytes, 50'000'000'000);
}

// 16 equal flows into one link end together, at the time of their sum.
TEST(IdealNetwork, FanInEndsTogether) {
  Topology topology = Star(17, {.down_bps = 1e9, .up_bps = 1e9, .rtt = 50ms});
  const auto network = MakeIdealNetwork(topology, {});
  std::vector<Time> ends;
  for (int i = 1; i <= 16; ++i) {
    network->Start({.from = i, .to = 0, .bytes = 50'000'000},
                   [&](const FlowResult& r) { ends.push_back(r.end); });
  }
  while (network->NextEvent()) network->AdvanceTo(kNever);
  EXPECT_THAT(ends, testing::Each(6450ms));
  EXPECT_EQ(ends.size(), 16u);
}

TEST(IdealNetwork, AFlowWithMoreStreamsGetsMore) {
  const auto network = MakeIdealNetwork(Star(3, {.down_bps = 8e6, .up_bps = 8e6}), {});
  FlowResult wide;
  network->Start({.from = 0, .to = 1, .bytes = 750'000, .streams = 3},
                 [&](const FlowResult& r) { wide = r; });
  network->Start({.from = 0, .to = 2, .bytes = 750'000}, {});
  while (network->NextEvent()) network->AdvanceTo(kNever);
  EXPECT_EQ(wide.end, 1s);
}

}  // namespace
}  // namespace spes::sim
