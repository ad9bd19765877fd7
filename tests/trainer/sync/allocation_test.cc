#include "trainer/sync/allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/trainer/protocol/fake_node.h"

namespace spes::trainer {
namespace {

using ::testing::HasSubstr;
using Owners = std::vector<std::vector<int>>;

Owners OwnersOf(const Allocation& a, int experts) {  // of MakeTinyTable(1, experts)
  Owners owners;
  for (BlockId id = 1; id <= experts; ++id) owners.push_back(a.trainers(id));
  return owners;
}

std::string Refusal(const AllocationConfig& config, int experts, int nodes,
                    const std::vector<NodeCapacity>& capacities = {}) {
  try {
    MakeAllocation(config, *MakeTinyTable(1, experts), nodes, capacities);
    return "";
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
}

TEST(Allocation, ContiguousAndRoundRobin) {
  const auto table = MakeTinyTable(2, 4);  // per layer: one shared block, four experts
  const Allocation contiguous = MakeAllocation({.kind = AllocationKind::kContiguous}, *table, 2);
  EXPECT_EQ(contiguous.blocks(0), (std::vector<BlockId>{0, 1, 2, 5, 6, 7}));
  EXPECT_EQ(contiguous.blocks(1), (std::vector<BlockId>{0, 3, 4, 5, 8, 9}));
  EXPECT_EQ(contiguous.trainers(0), (std::vector<int>{0, 1}));
  const Allocation turns = MakeAllocation({.kind = AllocationKind::kRoundRobin}, *table, 2);
  EXPECT_EQ(turns.blocks(0), (std::vector<BlockId>{0, 1, 3, 5, 6, 8}));
  EXPECT_TRUE(turns.Trains(1, 2));
  EXPECT_FALSE(turns.Trains(0, 2));
  EXPECT_EQ(contiguous.TrainableElements(0, *table), 2 * 5 + 4 * 12);
}

TEST(Allocation, UnevenSharesAreNeighboursAndSomeNodesOwnNothing) {
  const auto table = MakeTinyTable(1, 5);
  EXPECT_EQ(OwnersOf(MakeAllocation({}, *table, 3), 5), (Owners{{0}, {0}, {1}, {1}, {2}}));
  const auto two = MakeTinyTable(1, 2);
  const Allocation sparse = MakeAllocation({}, *two, 4);
  EXPECT_EQ(OwnersOf(sparse, 2), (Owners{{0}, {2}}));
  EXPECT_EQ(sparse.blocks(1), (std::vector<BlockId>{0}));
  EXPECT_EQ(OwnersOf(MakeAllocation({.replicas = 2}, *two, 4), 2), (Owners{{0, 1}, {2, 3}}));
  EXPECT_EQ(OwnersOf(MakeAllocation({.replicas = 3}, *two, 4), 2), (Owners{{0, 1, 2}, {0, 2, 3}}));
}

// Every kind, whatever the numbers: each expert has as many trainers as asked for, or the setting
// is refused with a reason; shared blocks go to everyone.
TEST(Allocation, EveryBlockHasItsTrainersOrThereIsAReason) {
  int made = 0, refused = 0;
  for (const int nodes : {1, 3, 4, 16}) {
    std::vector<NodeCapacity> capacities;
    for (int n = 0; n < nodes; ++n) capacities.push_back({1.0 + n * n, 5.0 + 7 * n % 11});
    for (int experts = 1; experts <= 64; ++experts) {
      const auto table = MakeTinyTable(1, experts);
      Owners list;
      std::vector<double> load;
      for (int e = 0; e < experts; ++e) {
        list.push_back({e * e % nodes});
        load.push_back((e * 7919) % 13);
      }
      for (const auto kind : {AllocationKind::kContiguous, AllocationKind::kRoundRobin,
                              AllocationKind::kAll, AllocationKind::kMemory, AllocationKind::kLoad,
                              AllocationKind::kBandwidth, AllocationKind::kList}) {
        for (int replicas = 1; replicas <= nodes + 1; ++replicas) {
          AllocationConfig config{.kind = kind, .replicas = replicas};
          if (kind == AllocationKind::kList) config.owners = list;
          const bool turns = kind != AllocationKind::kAll && kind != AllocationKind::kMemory &&
                             kind != AllocationKind::kBandwidth;
          if (turns) config.rotate_every = 2;
          const std::string context = std::to_string(nodes) + " nodes, " + std::to_string(experts) +
                                      " experts, kind " + std::to_string(static_cast<int>(kind)) +
                                      ", replicas " + std::to_string(replicas);
          const bool counts = kind != AllocationKind::kAll && kind != AllocationKind::kList;
          if (replicas > (counts ? nodes : 1)) {
            EXPECT_THAT(Refusal(config, experts, nodes, capacities), HasSubstr("replicas"))
                << context;
            ++refused;
            continue;
          }
          Allocation before = MakeAllocation(config, *table, nodes, capacities);
          for (int round = 1; round <= 5; ++round) {
            const Allocation a = AllocationOfRound(config, *table, nodes, capacities, round, load);
            ASSERT_EQ(a.trainers(0).size(), static_cast<std::size_t>(nodes)) << context;
            const int expected = kind == AllocationKind::kAll ? nodes : replicas;
            for (BlockId id = 1; id <= experts; ++id) {
              // The constructor refuses nodes that are not distinct, in order and in range.
              ASSERT_EQ(a.trainers(id).size(), static_cast<std::size_t>(expected)) << context;
            }
            if (round > 1 && !MayChange(config, round)) {
              ASSERT_EQ(a, before) << context;
            }
            before = a;
            ++made;
          }
        }
      }
    }
  }
  EXPECT_GT(made, 10'000);
  EXPECT_GT(refused, 500);
}

TEST(Allocation, SharesFollowMemoryOrUploadRate) {
  const std::vector<NodeCapacity> capacities = {{10, 1}, {20, 1}, {10, 1}, {40, 5}};
  const auto table = MakeTinyTable(1, 8);
  const auto of = [&](AllocationKind kind, int replicas) {
    return OwnersOf(MakeAllocation({.kind = kind, .replicas = replicas}, *table, 4, capacities), 8);
  };
  EXPECT_EQ(of(AllocationKind::kMemory, 1), (Owners{{0}, {1}, {1}, {2}, {3}, {3}, {3}, {3}}));
  EXPECT_EQ(of(AllocationKind::kBandwidth, 1), (Owners{{0}, {1}, {2}, {3}, {3}, {3}, {3}, {3}}));
  // 16 places: 2, 4, 2 and 8, each expert on two nodes.
  EXPECT_EQ(of(AllocationKind::kMemory, 2),
            (Owners{{0, 3}, {0, 3}, {1, 3}, {1, 3}, {1, 3}, {1, 3}, {2, 3}, {2, 3}}));
  // 16 places: 2, 2, 2 and 10, of which node 3 takes 8 and the others the rest: 3, 3, 2.
  EXPECT_EQ(of(AllocationKind::kBandwidth, 2),
            (Owners{{0, 3}, {0, 3}, {0, 3}, {1, 3}, {1, 3}, {1, 3}, {2, 3}, {2, 3}}));
}

TEST(Allocation, LoadIsSharedOutEvenly) {
  const AllocationConfig config{.kind = AllocationKind::kLoad, .rotate_every = 3};
  const auto table = MakeTinyTable(1, 5);
  EXPECT_EQ(OwnersOf(MakeAllocation(config, *table, 2), 5), (Owners{{0}, {1}, {0}, {1}, {0}}));
  // 10 → 0, 6 → 1, 5 → 1, 2 → 0, 1 → 1: 12 against 12.
  EXPECT_EQ(OwnersOf(AllocationOfRound(config, *table, 2, {}, 4, {1, 5, 10, 2, 6}), 5),
            (Owners{{1}, {1}, {0}, {0}, {1}}));
  // Experts that were never chosen are not all given to one node.
  EXPECT_EQ(OwnersOf(AllocationOfRound(config, *table, 2, {}, 4, {0, 0, 0, 0, 0}), 5),
            (Owners{{0}, {1}, {0}, {1}, {0}}));
  EXPECT_THROW(AllocationOfRound(config, *table, 2, {}, 4, {1, 5}), std::invalid_argument);
  EXPECT_THROW(AllocationOfRound(config, *table, 2, {}, 4, {1, 5, -1, 2, 2}),
               std::invalid_argument);
}

TEST(Allocation, RotationMovesEveryExpertByOneNode) {
  const auto table = MakeTinyTable(1, 4);
  const AllocationConfig config{.replicas = 2, .rotate_every = 2};
  const auto of = [&](int round) {
    return OwnersOf(AllocationOfRound(config, *table, 4, {}, round, {}), 4);
  };
  EXPECT_EQ(of(1), (Owners{{0, 1}, {1, 2}, {2, 3}, {0, 3}}));
  EXPECT_EQ(of(2), of(1));
  EXPECT_EQ(of(3), (Owners{{1, 2}, {2, 3}, {0, 3}, {0, 1}}));
  EXPECT_EQ(of(9), of(1));
  EXPECT_FALSE(MayChange(config, 1));
  EXPECT_FALSE(MayChange(config, 2));
  EXPECT_TRUE(MayChange(config, 3));
  EXPECT_FALSE(MayChange(config, 4));
  EXPECT_TRUE(MayChange({.rotate_every = 1}, 2));
  EXPECT_FALSE(MayChange({}, 3));
  // Never rotating is the plain allocation.
  EXPECT_EQ(AllocationOfRound({}, *table, 4, {}, 100, {}), MakeAllocation({}, *table, 4));
}

TEST(Allocation, SharedBlocksMayBeFrozenOnSomeNodes) {
  const auto table = MakeTinyTable(2, 2);
  AllocationConfig config;
  config.frozen_shared = {{{0, 2}, {"layers.1."}}, {{1}, {"layers.0.q"}}};
  const Allocation a = MakeAllocation(config, *table, 3);
  EXPECT_EQ(a.trainers(0), (std::vector<int>{0, 2}));
  EXPECT_EQ(a.trainers(3), (std::vector<int>{1}));
  EXPECT_EQ(a.trainers(1), (std::vector<int>{0}));  // experts are as they were
  EXPECT_EQ(a.trainers(4), (std::vector<int>{0}));
  config.frozen_shared = {{{0}, {"layers.0."}}, {{1}, {"layers."}}};
  EXPECT_EQ(Refusal(config, 2, 2), "layers.0.q is frozen on all nodes");
  config.frozen_shared = {{{0}, {"layers.0.experts"}}};
  EXPECT_EQ(Refusal(config, 2, 2), "no shared parameter begins with 'layers.0.experts'");
  config.frozen_shared = {{{2}, {"layers.0."}}};
  EXPECT_EQ(Refusal(config, 2, 2), "shared parameters are frozen on node 2; nodes are from 0 to 1");
  config.frozen_shared = {{{}, {"layers.0."}}};
  EXPECT_EQ(Refusal(config, 2, 2), "frozen shared parameters need both nodes and parts");
}

TEST(Allocation, WhatCannotBeIsRefused) {
  EXPECT_EQ(Refusal({}, 4, 0), "0 nodes: at least 1 is needed");
  EXPECT_EQ(Refusal({}, 0, 3), "");  // a dense model
  EXPECT_EQ(Refusal({.replicas = 5}, 4, 4), "5 replicas of each expert among 4 nodes: from 1 to 4");
  EXPECT_EQ(Refusal({.kind = AllocationKind::kAll, .replicas = 2}, 4, 4),
            "2 replicas of each expert, but 'all' says already who trains it");
  const auto list = [](Owners owners) {
    return Refusal({.kind = AllocationKind::kList, .owners = std::move(owners)}, 2, 3);
  };
  EXPECT_EQ(list({{2}, {1, 0}}), "");
  EXPECT_EQ(list({{2}}), "owners of 1 experts are listed, but there are 2 in each layer");
  EXPECT_EQ(list({{2}, {}}), "expert 1 has no owner in the list");
  EXPECT_EQ(list({{2}, {1, 3}}), "expert 1 is listed for node 3; nodes are from 0 to 2");
  EXPECT_EQ(list({{-1}, {1}}), "expert 0 is listed for node -1; nodes are from 0 to 2");
  EXPECT_EQ(list({{2, 0, 2}, {1}}), "expert 0 is listed twice for one node");
  EXPECT_EQ(Refusal({.owners = {{0}}}, 1, 1),
            "owners are listed, but experts are not allocated by the list");
  EXPECT_EQ(Refusal({.kind = AllocationKind::kMemory}, 4, 2),
            "shares by memory need that of each node: 0 are known of 2");
  EXPECT_EQ(Refusal({.kind = AllocationKind::kMemory}, 4, 2, {{5, 0}, {-3, 0}}),
            "node 1 has -3 bytes of memory for experts; it must be more than 0");
  EXPECT_EQ(Refusal({.kind = AllocationKind::kBandwidth}, 4, 2, {{5, 0}, {3, 0}}),
            "node 0 has an upload rate of 0 bit/s for experts; it must be more than 0");
  EXPECT_EQ(Refusal({.rotate_every = -1}, 4, 2), "rotation after -1 rounds: at least 0");
  EXPECT_THAT(Refusal({.kind = AllocationKind::kAll, .rotate_every = 1}, 4, 2),
              HasSubstr("nothing can rotate"));
  EXPECT_THAT(Refusal({.kind = AllocationKind::kMemory, .rotate_every = 1}, 4, 2),
              HasSubstr("leave rotate_every at 0"));
  EXPECT_THAT(Refusal({.kind = AllocationKind::kLoad}, 4, 2), HasSubstr("need rotate_every"));
}

}  // namespace
}  // namespace spes::trainer
