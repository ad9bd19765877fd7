// Whole runs of coordinator and peers whose parameters travel by an exchange pattern.
#include "trainer/runtime/planned_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>

#include "tests/trainer/protocol/fake_node.h"
#include "tests/trainer/protocol/memory_recorder.h"
#include "trainer/protocol/coordinator.h"
#include "trainer/protocol/peer.h"
#include "trainer/runtime/sim_runtime.h"

namespace spes::trainer {
namespace {

using sim::ExchangePattern;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr int kNodes = 4;

// Four nodes, a coordinator and another one; 8 kbps = 1 kB/s each way, 20 ms from host to host.
sim::Topology Six() {
  sim::Topology t;
  t.sites = {"here"};
  t.paths = {{sim::SitePath{}}};
  for (const char* name : {"a", "b", "c", "d", "coordinator", "second"}) {
    t.hosts.push_back({name, 0, {.down_bps = 8e3, .up_bps = 8e3, .rtt = milliseconds(20)}});
  }
  return t;
}

// Two rounds of three steps; node n needs n + 1 seconds per step and adds as much.
struct Training {
  explicit Training(std::optional<ExchangePattern> pattern, MergeConfig merge = {}, int sends = 0) {
    network = sim::MakeIdealNetwork(Six(), {});
    loop = std::make_unique<sim::EventLoop>(network.get());
    runtime = std::make_unique<SimRuntime>(*loop, *network, pool, recorder, kNodes, 1);
    const World world = MakeTinyWorld(table);
    CoordinatorConfig config;
    config.scenario_hash = "same";
    config.schedule = {.total_steps = 6, .every = 3};
    config.update.merge = merge;
    if (pattern) {
      ExchangeConfig exchange;
      exchange.pattern = *pattern;
      exchange.coordinators = {kNodes, kNodes + 1};
      exchange.sites = {0, 0, 1, 1};
      exchange.merge = merge;
      exchange.schedule = config.schedule;
      schedule = std::make_shared<ExchangeSchedule>(*table, allocation, exchange);
      config.charge = [this](NodeId node, const Message& m) {
        return schedule->Charge(node, m, *table);
      };
      runtime->UseExchange(schedule, sends);
    }
    coordinator =
        std::make_unique<Coordinator>(config, allocation, world, runtime->endpoint(kCoordinator),
                                      recorder, [this](const PublishedRound& p) {
                                        bytes_so_far = p.bytes_so_far;
                                        published_s.push_back(p.virtual_s);
                                      });
    runtime->Connect(kCoordinator,
                     [this](NodeId from, const Message& m) { coordinator->OnMessage(from, m); });
    for (NodeId n = 0; n < kNodes; ++n) {
      nodes.push_back(std::make_unique<FakeNode>(world, allocation.blocks(n), n + 1));
      peers.push_back(std::make_unique<Peer>(
          PeerConfig{n, "same", WorldHash(world),
                     [n](std::int64_t) { return sim::Time(seconds(n + 1)); }},
          *nodes.back(), world, runtime->endpoint(n), stop));
      runtime->Connect(
          n, [peer = peers.back().get()](NodeId, const Message& m) { peer->OnMessage(m); });
    }
    for (auto& peer : peers) peer->Start();
  }

  std::shared_ptr<const BlockTable> table = MakeTinyTable(2, kNodes);
  Allocation allocation = MakeAllocation({.kind = AllocationKind::kContiguous}, *table, kNodes);
  std::unique_ptr<sim::Network> network;
  std::unique_ptr<sim::EventLoop> loop;
  ComputePool pool{2};
  MemoryRecorder recorder;
  std::shared_ptr<const ExchangeSchedule> schedule;
  std::unique_ptr<SimRuntime> runtime;
  std::atomic<bool> stop{false};
  std::int64_t bytes_so_far = 0;
  std::vector<double> published_s;
  std::unique_ptr<Coordinator> coordinator;
  std::vector<std::unique_ptr<FakeNode>> nodes;
  std::vector<std::unique_ptr<Peer>> peers;
};

constexpr ExchangePattern kPatterns[] = {ExchangePattern::kCoordinator,
                                         ExchangePattern::kCoordinators, ExchangePattern::kRing,
                                         ExchangePattern::kDirect, ExchangePattern::kTree};
constexpr MergeConfig kMerge = {.interval = 3, .alpha = 0.1, .length = 100, .donors = 2};

TEST(PlannedExchange, TheWorldIsTheSameByEveryPattern) {
  for (const MergeConfig& merge : {MergeConfig{}, kMerge}) {
    Training through_messages(std::nullopt, merge);
    through_messages.loop->Run();
    ASSERT_TRUE(through_messages.coordinator->finished());
    for (const ExchangePattern pattern : kPatterns) {
      for (const int sends : {0, 1}) {
        Training run(pattern, merge, sends);
        run.loop->Run();
        ASSERT_TRUE(run.coordinator->finished()) << Name(pattern);
        EXPECT_EQ(WorldHash(run.coordinator->world()),
                  WorldHash(through_messages.coordinator->world()))
            << Name(pattern);
      }
    }
  }
}

TEST(PlannedExchange, TheLogsBytesAreThoseOfItsFlows) {
  for (const ExchangePattern pattern : kPatterns) {
    Training run(pattern, kMerge);
    run.loop->Run();
    for (const int round : {1, 2}) {
      std::int64_t up_of_all = 0, down_of_all = 0;
      for (NodeId n = 0; n < kNodes; ++n) {
        std::int64_t up = 0, down = 0;
        for (const auto& flow : run.recorder.flows) {
          if (flow.message != Name(pattern) || flow.round != round) continue;
          EXPECT_EQ(flow.outcome, "done");
          if (flow.from == n) up += flow.bytes;
          if (flow.to == n) down += flow.bytes;
        }
        EXPECT_GT(up, 0);
        EXPECT_GT(down, 0);
        const auto row =
            std::find_if(run.recorder.node_rounds.begin(), run.recorder.node_rounds.end(),
                         [&](const auto& each) { return each.round == round && each.node == n; });
        ASSERT_NE(row, run.recorder.node_rounds.end());
        EXPECT_EQ(row->up_bytes, up) << Name(pattern);
        EXPECT_EQ(row->down_bytes, down) << Name(pattern);
        up_of_all += up;
        down_of_all += down;
      }
      const auto& record = run.recorder.rounds[static_cast<std::size_t>(round - 1)];
      EXPECT_EQ(record.up_bytes, up_of_all);
      EXPECT_GE(record.down_bytes, down_of_all);
      EXPECT_LE(record.down_bytes, down_of_all + kNodes * 100) << "admissions";
    }
    // No offers and updates beside them.
    for (const auto& flow : run.recorder.flows) {
      EXPECT_NE(flow.message, "offer");
      EXPECT_NE(flow.message, "update");
    }
  }
}

TEST(PlannedExchange, CoordinatorsAreTheNodesBelowZero) {
  Training run(ExchangePattern::kCoordinators);
  run.loop->Run();
  std::set<int> ends;
  for (const auto& flow : run.recorder.flows) {
    if (flow.message == "coordinators") ends.insert({flow.from, flow.to});
  }
  EXPECT_EQ(ends, (std::set<int>{-2, -1, 0, 1, 2, 3}));
}

// The slowest node computes 12 s; then the ring takes 2·3 steps, of which each carries a quarter
// of the shared bytes and, in the all-gather, the experts of one node.
TEST(PlannedExchange, ARoundTakesComputingAndTheRing) {
  Training run(ExchangePattern::kRing);
  run.loop->Run();
  const double shared = 2 * (5 * 8 + 24), experts = 2 * (12 * 8 + 24);
  const double exchange = 6 * 0.020 + 6 * shared / 4 / 1000 + 3 * experts / 1000;
  const auto& rounds = run.recorder.rounds;
  EXPECT_NEAR(rounds[0].end_s - rounds[0].start_s, 12 + exchange, 0.4)
      << "more than the admissions, which no other round has";
  EXPECT_NEAR(rounds[1].end_s - rounds[1].start_s, 12 + exchange, 1e-6);
  for (const auto& row : run.recorder.node_rounds) {
    if (row.round != 2) continue;
    EXPECT_NEAR(row.compute_s + row.up_s + row.wait_s + row.down_s, 12 + exchange, 1e-6);
    EXPECT_NEAR(row.down_s, 0, 1e-12);
  }
}

TEST(PlannedExchange, AFailedTransferEndsTheRunByName) {
  Training run(ExchangePattern::kRing);
  // Whatever is under way when node 3 has computed is cancelled from outside.
  run.loop->At(seconds(13), [&] {
    for (sim::FlowId id = 1; id < 100; ++id) run.network->Cancel(id);
  });
  try {
    run.loop->Run();
    FAIL() << "the run went on";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("round 1: the exchange by ring cannot go on: the transfer "
                                        "from node "));
    EXPECT_THAT(error.what(), HasSubstr("cancelled after"));
  }
}

}  // namespace
}  // namespace spes::trainer
