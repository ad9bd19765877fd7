// Processes and the faults that befall them, over a modelled network and threads that work.
#include "trainer/runtime/machines.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <stdexcept>
#include <thread>

#include "tests/trainer/protocol/fake_node.h"
#include "tests/trainer/protocol/memory_recorder.h"
#include "trainer/runtime/sim_runtime.h"

namespace spes::trainer {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kNodes = 3;

// 800 kbps = 100 kB/s each way, 20 ms from host to host.
struct Below {
  explicit Below(int threads) : pool(threads) {}
  static sim::Topology Four() {
    sim::Topology t;
    t.sites = {"here"};
    t.paths = {{sim::SitePath{}}};
    for (const char* name : {"a", "b", "c", "coordinator"}) {
      t.hosts.push_back({name, 0, {.down_bps = 8e5, .up_bps = 8e5, .rtt = milliseconds(20)}});
    }
    return t;
  }
  FaultyRuntime::Carrier carrier() {
    return {[this](NodeId id) -> Runtime& { return runtime.endpoint(id); },
            [this](NodeId id, FaultyRuntime::OnMessage f) { runtime.Connect(id, std::move(f)); },
            [this](NodeId node) { runtime.Cut(node); }};
  }
  std::unique_ptr<sim::Network> network = sim::MakeIdealNetwork(Four(), {});
  sim::EventLoop loop{network.get()};
  ComputePool pool;
  MemoryRecorder recorder;
  SimRuntime runtime{loop, *network, pool, recorder, kNodes, 1};
};

// Six rounds of two steps of a second.
struct WholeRun : Below {
  WholeRun(const FaultPlanConfig& faults, int threads) : Below(threads) {
    const World world = MakeTinyWorld(table);
    CoordinatorConfig config;
    config.scenario_hash = "same";
    config.schedule = {.total_steps = 12, .every = 2};
    config.patience = seconds(1000);
    MachineParts parts{std::move(config),
                       allocation,
                       world,
                       [world](NodeId node) {
                         PeerConfig peer;
                         peer.node = node;
                         peer.scenario_hash = "same";
                         peer.world_hash = WorldHash(world);
                         peer.step_time = [](std::int64_t) { return seconds(1); };
                         return peer;
                       },
                       [this, world](NodeId node) {
                         return std::make_unique<FakeNode>(world, allocation.blocks(node),
                                                           0.37 * (node + 1));
                       },
                       {}};
    machines = std::make_unique<Machines>(std::move(parts), FaultStream(faults, kNodes), carrier(),
                                          FaultyRuntime::Options{.detection = milliseconds(200)},
                                          recorder, stop);
  }
  void Run() {
    machines->Start();
    loop.Run([this] { return machines->finished() || loop.Now() > hours(2); });
  }
  std::string Hash() const { return WorldHash(machines->coordinator()->world()); }

  std::shared_ptr<const BlockTable> table = MakeTinyTable(2, kNodes);
  Allocation allocation = MakeAllocation({}, *table, kNodes);
  std::atomic<bool> stop{false};
  std::unique_ptr<Machines> machines;
};

TEST(Machines, ComeToTheSameWorldWhateverBefallsThem) {
  WholeRun undisturbed({}, 2);
  undisturbed.Run();
  ASSERT_TRUE(undisturbed.machines->finished());
  EXPECT_EQ(undisturbed.machines->lives(0), 1);

  FaultPlanConfig faults;
  faults.random = {{FaultKind::kCrash, {0, 1, 2}, seconds(12), milliseconds(300)},
                   {FaultKind::kCrash, {kCoordinator}, seconds(9), milliseconds(300)},
                   {FaultKind::kOutage, {0, 2}, seconds(9), milliseconds(500)},
                   {FaultKind::kHalfOpenDown, {1}, seconds(9), milliseconds(500)},
                   {FaultKind::kFullDisk, {kCoordinator, 1}, seconds(15), milliseconds(300)},
                   {FaultKind::kRepeat, {1}, seconds(5), milliseconds(300)},
                   {FaultKind::kReorder, {2}, seconds(5), milliseconds(300)}};
  std::optional<std::vector<analysis::EventRecord>> events;
  for (const int threads : {1, 4}) {
    WholeRun disturbed(faults, threads);
    disturbed.Run();
    ASSERT_TRUE(disturbed.machines->finished()) << disturbed.machines->WaitedFor();
    EXPECT_EQ(disturbed.Hash(), undisturbed.Hash());
    EXPECT_GT(disturbed.machines->lives(kCoordinator) + disturbed.machines->lives(0), 2);
    EXPECT_GT(disturbed.recorder.events.size(), 30U);
    if (events) {
      EXPECT_EQ(disturbed.recorder.events, *events);
    }
    events = disturbed.recorder.events;
  }
}

TEST(Machines, AreDesertedWhenAllNodesAreGoneForGood) {
  FaultPlanConfig faults;
  for (const NodeId node : {0, 1, 2}) {
    faults.scripted.push_back({milliseconds(50 + node), FaultKind::kCrash, node, sim::kNever, 1});
  }
  WholeRun run(faults, 1);
  run.machines->Start();
  while (run.loop.Now() < milliseconds(51)) run.loop.Step();
  EXPECT_FALSE(run.machines->deserted());
  EXPECT_EQ(run.machines->WaitedFor(),
            "node 0 (ended for good), node 1 (ended for good), node 2 (training)");
  while (run.loop.Now() < milliseconds(52)) run.loop.Step();
  EXPECT_TRUE(run.machines->deserted());
}

// Two computations of one process at a time.
struct Process : Below {
  Process() : Below(2) {
    faulty.Begin(0, {[](NodeId, const Message&) {}, [](NodeId, const std::string&) {}, [] {}});
  }
  FaultyRuntime faulty{kNodes, carrier(), {}};
};

TEST(FaultyRuntime, WhatAComputationWritesIsDurableWithItsOwnEnd) {
  Process p;
  double written_s = 0;
  std::atomic<bool> staged{false};
  p.faulty.endpoint(0).Compute(
      [&] {
        p.faulty.Stage(0, [&] { written_s = sim::ToSeconds(p.loop.Now()); });
        staged = true;
      },
      seconds(3), [] {});
  p.faulty.endpoint(0).Compute(
      [&] {
        while (!staged) std::this_thread::yield();
      },
      seconds(1), [] {});
  p.loop.Run();
  EXPECT_EQ(written_s, 3);
}

TEST(FaultyRuntime, NothingComesOfTheWorkOfAProcessThatHasEnded) {
  Process p;
  std::atomic<bool> begun{false};
  p.faulty.endpoint(0).Compute(
      [&] {
        begun = true;
        p.faulty.Stage(0, [] { FAIL() << "durable"; });
        throw std::runtime_error("of nobody's");
      },
      seconds(3), [] { FAIL() << "done"; });
  p.loop.After(seconds(1), [&] {
    while (!begun) std::this_thread::yield();
    p.faulty.End(0);
  });
  p.loop.Run();
  EXPECT_FALSE(p.faulty.alive(0));
}

TEST(FaultyRuntime, AFailureOfAProcessThatIsThereIsItsOwners) {
  Process p;
  p.faulty.endpoint(0).Compute([] { throw std::runtime_error("no data"); }, seconds(1), [] {});
  EXPECT_THROW(p.loop.Run(), std::runtime_error);
}

}  // namespace
}  // namespace spes::trainer
