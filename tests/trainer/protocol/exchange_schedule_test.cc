#include "trainer/protocol/exchange_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/protocol/fake_node.h"
#include "trainer/model/config.h"
#include "trainer/protocol/wire_size.h"

namespace spes::trainer {
namespace {

using sim::ExchangePattern;

ExchangeConfig Config(ExchangePattern pattern, int nodes) {
  ExchangeConfig config;
  config.pattern = pattern;
  config.coordinators = {nodes};
  config.sites.assign(static_cast<std::size_t>(nodes), 0);
  config.schedule = {.total_steps = 12, .every = 3};
  return config;
}

TEST(PayloadsOf, OneForEachSetOfTrainers) {
  const auto table = MakeTinyTable(2, 4);  // 5 shared doubles and 4 experts of 12 in each layer
  const auto payloads =
      PayloadsOf(*table, MakeAllocation({.kind = AllocationKind::kContiguous}, *table, 2));
  ASSERT_EQ(payloads.size(), 3u);
  std::int64_t sum = 0;
  for (const sim::Payload& payload : payloads) {
    const bool shared = payload.trainers.size() == 2;
    const std::int64_t bytes =
        shared ? 2 * (5 * 8 + kBlockHeaderBytes) : 4 * (12 * 8 + kBlockHeaderBytes);
    EXPECT_EQ(payload.up_bytes, bytes);
    EXPECT_EQ(payload.down_bytes, bytes);
    sum += bytes;
  }
  EXPECT_EQ(sum, 8 * (12 * 8 + 24) + 2 * (5 * 8 + 24));
}

TEST(PayloadsOf, ExpertsOfSeveralTrainersAreTogether) {
  const auto table = MakeTinyTable(1, 3);
  const Allocation allocation(3, {{0, 1, 2}, {0, 1}, {0, 1}, {2}});
  const auto payloads = PayloadsOf(*table, allocation);
  ASSERT_EQ(payloads.size(), 3u);
  EXPECT_THAT(payloads[0].trainers, testing::ElementsAre(0, 1));
  EXPECT_EQ(payloads[0].up_bytes, 2 * (12 * 8 + 24));
}

TEST(ExchangeSchedule, ChargesWhatTheNodeMoves) {
  const auto table = MakeTinyTable(1, 4);
  const Allocation allocation = MakeAllocation({.kind = AllocationKind::kContiguous}, *table, 4);
  const std::int64_t shared = 5 * 8 + 24, expert = 12 * 8 + 24;
  const ExchangeSchedule ring(*table, allocation, Config(ExchangePattern::kRing, 4));
  Offer offer;
  offer.span.round = 2;
  EXPECT_EQ(ring.Charge(1, offer, *table), 2 * 3 * shared / 4 + 3 * expert);
  EXPECT_EQ(ring.Charge(1, Update{2, 0, false, {}, {}}, *table), 2 * 3 * shared / 4 + 3 * expert);
  EXPECT_EQ(ring.Charge(1, Leave{"bye"}, *table), WireBytes(Leave{"bye"}, *table));
  EXPECT_EQ(ring.hosts(), 5);
  const ExchangeSchedule star(*table, allocation, Config(ExchangePattern::kCoordinator, 4));
  EXPECT_EQ(star.BytesOf(0, 1).up, shared + expert);
  EXPECT_EQ(star.BytesOf(0, 1).down, shared + 3 * expert);
  EXPECT_EQ(star.BytesOf(4, 1).up, 4 * star.BytesOf(0, 1).down);
}

TEST(ExchangeSchedule, MergedExpertsComeBackToTheirOwners) {
  const auto table = MakeTinyTable(1, 4);
  const Allocation allocation = MakeAllocation({.kind = AllocationKind::kContiguous}, *table, 4);
  ExchangeConfig config = Config(ExchangePattern::kCoordinator, 4);
  config.merge = {.interval = 6, .alpha = 0.1, .length = 12, .donors = 1};
  const ExchangeSchedule schedule(*table, allocation, config);
  // Merges at steps 6 (α > 0) and 12 (α = 0): of four rounds only the second.
  const std::int64_t shared = 5 * 8 + 24, expert = 12 * 8 + 24;
  for (const int round : {1, 3, 4}) {
    EXPECT_EQ(schedule.KindOf(round), 0);
    EXPECT_EQ(schedule.BytesOf(0, round).down, shared + 3 * expert);
  }
  EXPECT_EQ(schedule.KindOf(2), 1);
  EXPECT_EQ(schedule.BytesOf(0, 2).down, shared + 4 * expert);
}

// Whatever is published of an expert is not what its owner has: after an outer step, as a lossy
// code.
TEST(ExchangeSchedule, ExpertsThatAreSteppedOrCodedComeBackToTheirOwners) {
  const auto table = MakeTinyTable(1, 4);
  const Allocation allocation = MakeAllocation({.kind = AllocationKind::kContiguous}, *table, 4);
  const std::int64_t shared = 5 * 8 + 24, expert = 12 * 8 + 24;
  ExchangeConfig config = Config(ExchangePattern::kCoordinator, 4);
  config.steps_experts = true;
  EXPECT_EQ(ExchangeSchedule(*table, allocation, config).BytesOf(0, 1).down, shared + 4 * expert);
  config.steps_experts = false;
  config.coding.down = {.kind = CodecKind::kBf16};
  const std::int64_t coded = (5 * 2 + 24) + 4 * (12 * 2 + 24);
  EXPECT_NEAR(ExchangeSchedule(*table, allocation, config).BytesOf(0, 1).down, coded, 5 * 8);
}

// Fragments and moments: each round moves what is due in it, up and down.
TEST(ExchangeSchedule, EachRoundMovesWhatIsDue) {
  const auto table = MakeTinyTable(2, 4);
  const Allocation allocation = MakeAllocation({.kind = AllocationKind::kContiguous}, *table, 4);
  ExchangeConfig config = Config(ExchangePattern::kCoordinator, 4);
  config.schedule = {.total_steps = 8, .every = 4, .fragments = 2};
  const ExchangeSchedule schedule(*table, allocation, config);
  const std::int64_t layer = 5 * 8 + 24 + 12 * 8 + 24;  // of one node
  ASSERT_EQ(schedule.rounds().rounds(), 4);
  EXPECT_EQ(schedule.BytesOf(0, 1).up, layer);
  EXPECT_EQ(schedule.BytesOf(0, 2).up, layer);
  EXPECT_EQ(schedule.BytesOf(0, 4).up, 2 * layer) << "all at the end";
  config.schedule.fragments = 1;
  config.coding.moments = true;
  EXPECT_EQ(ExchangeSchedule(*table, allocation, config).BytesOf(0, 1).up,
            2 * (layer + 2 * 8 + 2 * (5 + 12) * 8));
}

TEST(ExchangeSchedule, FurtherCoordinatorsCountForTheirPatternOnly) {
  const auto table = MakeTinyTable(1, 4);
  const Allocation allocation = MakeAllocation({.kind = AllocationKind::kContiguous}, *table, 4);
  ExchangeConfig config = Config(ExchangePattern::kCoordinators, 4);
  config.coordinators = {4, 7};
  const ExchangeSchedule two(*table, allocation, config);
  EXPECT_EQ(two.hosts(), 8);
  EXPECT_EQ(two.BytesOf(4, 1).down + two.BytesOf(7, 1).down, 4 * two.BytesOf(0, 1).up);
  EXPECT_LE(two.BytesOf(4, 1).down - two.BytesOf(7, 1).down, 8);
  config.pattern = ExchangePattern::kTree;
  EXPECT_EQ(ExchangeSchedule(*table, allocation, config).BytesOf(7, 1).down, 0);
}

// A table holds sizes, no parameters: 100 billion of them cost nothing.
TEST(ExchangeSchedule, KnowsModelsThatNoMachineHolds) {
  ModelConfig model;
  model.layers = 64;
  model.width = 8192;
  model.heads = 64;
  model.kv_heads = 8;
  model.experts = 64;
  model.expert_width = 4096;
  model.vocabulary = 100'000;
  const auto table = MakeBlockTable(model);
  EXPECT_GT(table->TotalElements(), 400'000'000'000);
  const Allocation allocation = MakeAllocation({.kind = AllocationKind::kContiguous}, *table, 16);
  const ExchangeSchedule schedule(*table, allocation, Config(ExchangePattern::kCoordinator, 16));
  EXPECT_GT(schedule.BytesOf(3, 1).down, 4 * table->TotalElements() * 15 / 16);
}

}  // namespace
}  // namespace spes::trainer
