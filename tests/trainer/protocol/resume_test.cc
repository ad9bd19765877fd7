// Whoever is killed, whenever: the run goes on where it was and ends in the same world.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <ostream>
#include <utility>
#include <vector>

#include "tests/trainer/protocol/cluster.h"
#include "tests/trainer/protocol/fake_node.h"
#include "tests/trainer/protocol/memory_recorder.h"
#include "tests/trainer/protocol/scripted_carrier.h"
#include "trainer/runtime/machines.h"

namespace spes::trainer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A coordinator and its nodes, each of which can be killed and begun anew.
class Processes {
 public:
  Processes(int nodes, CoordinatorConfig config, PeerConfig peer)
      : table_(MakeTinyTable(2, 2 * nodes)), world_(MakeTinyWorld(table_)) {
    config.scenario_hash = peer.scenario_hash = "same";
    config.offered = peer.codec;
    config.patience = seconds(1000);
    peer.published = config.update.codec;
    peer.world_hash = WorldHash(world_);
    peer.step_time = [](std::int64_t) { return milliseconds(100); };
    const Allocation allocation = MakeAllocation(config.allocation, *table_, nodes);
    MachineParts parts{std::move(config),
                       allocation,
                       world_,
                       [peer](NodeId node) {
                         PeerConfig own = peer;
                         own.node = node;
                         return own;
                       },
                       [this, allocation](NodeId node) {
                         return std::make_unique<FakeNode>(world_, allocation.blocks(node),
                                                           0.37 * (node + 1));
                       },
                       {},
                       {},
                       {},
                       true};
    machines_ = std::make_unique<Machines>(
        std::move(parts), FaultStream({}, nodes), CarrierOf(runtime_),
        FaultyRuntime::Options{.detection = milliseconds(0)}, recorder_, stop_);
    machines_->Start();
  }

  // Its process is gone at once and begins anew after a while.
  void Kill(NodeId id, sim::Time begins_after) {
    machines_->Strike({Now(), FaultKind::kCrash, id, begins_after, 1});
  }
  void At(sim::Time t, std::function<void()> f) { runtime_.loop.At(t, std::move(f)); }
  void Run() { runtime_.loop.Run(); }
  bool finished() const { return machines_->finished(); }
  std::string Hash() const { return WorldHash(machines_->coordinator()->world()); }
  sim::Time Now() const { return runtime_.loop.Now(); }

 private:
  std::shared_ptr<const BlockTable> table_;
  World world_;
  ScriptedRuntime runtime_;
  MemoryRecorder recorder_;
  std::atomic<bool> stop_{false};
  std::unique_ptr<Machines> machines_;
};

struct Case {
  const char* name;
  CoordinatorConfig config = {};
  PeerConfig peer = {};
  friend std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }
};

std::vector<Case> Cases() {
  CoordinatorConfig plain;
  plain.schedule = {.total_steps = 12, .every = 3};
  std::vector<Case> cases{{"plain", plain}};
  Case merged{"merged", plain};
  merged.config.update.merge = {.interval = 3, .alpha = 0.3, .length = 100};
  cases.push_back(merged);
  Case outer{"outer", plain};
  outer.config.allocation.kind = AllocationKind::kAll;
  outer.config.update.outer_shared = outer.config.update.outer_experts = {.nesterov = true};
  cases.push_back(outer);
  for (const bool differences : {false, true}) {
    Case coded{differences ? "differences" : "coded", plain};
    coded.peer.codec = {
        .kind = CodecKind::kInt4, .differences = differences, .error_feedback = true, .group = 4};
    coded.config.update.codec = coded.peer.codec;
    cases.push_back(coded);
  }
  Case moments{"averaged moments", plain};
  moments.config.moments = moments.peer.moments = MomentsRule::kAveraged;
  cases.push_back(moments);
  Case rotated{"rotated", plain};
  rotated.config.allocation.rotate_every = 1;
  cases.push_back(rotated);
  Case streaming{"streaming", plain};
  streaming.config.schedule.fragments = 2;
  streaming.config.schedule.overlap = 1;
  streaming.config.schedule.every = 4;
  cases.push_back(streaming);
  Case streaming_coded = streaming;
  streaming_coded.name = "streaming coded";
  streaming_coded.peer.codec = {.kind = CodecKind::kInt8, .differences = true, .group = 4};
  streaming_coded.config.update.codec = {.kind = CodecKind::kBf16};
  cases.push_back(streaming_coded);
  return cases;
}

class Resume : public testing::TestWithParam<Case> {
 protected:
  std::string Undisturbed(sim::Time* end) {
    Processes all(3, GetParam().config, GetParam().peer);
    all.Run();
    EXPECT_TRUE(all.finished());
    *end = all.Now();
    return all.Hash();
  }
  // `kill` at every moment of the run, in steps that hit the middle of messages and of work.
  void KillAtEveryMoment(const std::function<void(Processes&)>& kill) {
    sim::Time end{0};
    const std::string hash = Undisturbed(&end);
    int killed = 0;
    for (sim::Time t = milliseconds(1); t < end; t += milliseconds(7)) {
      Processes all(3, GetParam().config, GetParam().peer);
      all.At(t, [&] { kill(all); });
      all.Run();
      ASSERT_TRUE(all.finished()) << sim::ToSeconds(t) << " s";
      ASSERT_EQ(all.Hash(), hash) << sim::ToSeconds(t) << " s";
      ++killed;
    }
    EXPECT_GT(killed, 100);
  }
};

TEST_P(Resume, OfTheCoordinator) {
  KillAtEveryMoment([](Processes& all) { all.Kill(kCoordinator, seconds(1)); });
}

TEST_P(Resume, OfANode) {
  KillAtEveryMoment([](Processes& all) { all.Kill(1, seconds(1)); });
}

TEST_P(Resume, OfAll) {
  KillAtEveryMoment([](Processes& all) {
    for (NodeId n = 0; n < 3; ++n) all.Kill(n, seconds(2 + n));
    all.Kill(kCoordinator, seconds(1));
  });
}

INSTANTIATE_TEST_SUITE_P(Every, Resume, testing::ValuesIn(Cases()), [](const auto& info) {
  std::string name = info.param.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
});

// Node 2 is gone for good and its experts are handed over; node 0 is slow; the coordinator begins
// anew, and node 0's link is down for a while.
TEST(Resume, ASlowNodeDoesNotStandStillAfterTheCoordinatorBeganAnewAndItsLinkWasDown) {
  ScriptedRuntime runtime;
  const auto table = MakeTinyTable(1, 6);
  const World world = MakeTinyWorld(table);
  MemoryRecorder recorder;
  std::atomic<bool> stop{false};
  CoordinatorConfig config;
  config.schedule = {.total_steps = 600, .every = 3};
  config.scenario_hash = "same";
  config.patience = seconds(5);
  config.orphans = OrphanRule::kHandedOver;
  const Allocation allocation = MakeAllocation(config.allocation, *table, 3);
  MachineParts parts{config,
                     allocation,
                     world,
                     [&world](NodeId node) {
                       PeerConfig own;
                       own.node = node;
                       own.scenario_hash = "same";
                       own.world_hash = WorldHash(world);
                       own.step_time = [](std::int64_t) { return milliseconds(100); };
                       return own;
                     },
                     [&world, allocation](NodeId node) {
                       return std::make_unique<FakeNode>(world, allocation.blocks(node), node + 1);
                     },
                     {},
                     {},
                     {},
                     true};
  // The second round of node 0 takes 300 s.
  const FaultPlanConfig faults{.scripted = {{seconds(1), FaultKind::kSlow, 0, seconds(300), 1000}}};
  Machines machines(std::move(parts), FaultStream(faults, 3), CarrierOf(runtime),
                    FaultyRuntime::Options{.detection = milliseconds(1)}, recorder, stop);
  machines.Start();
  const auto strike = [&](sim::Time at, FaultKind kind, NodeId node, sim::Time d, double factor) {
    runtime.loop.At(at, [&machines, at, kind, node, d, factor] {
      machines.Strike({at, kind, node, d, factor});
    });
  };
  strike(milliseconds(100), FaultKind::kCrash, 2, sim::kNever, 1);
  strike(seconds(10), FaultKind::kCrash, kCoordinator, seconds(1), 1);
  strike(seconds(17), FaultKind::kOutage, 0, seconds(20), 1);
  runtime.loop.Run();
  EXPECT_TRUE(machines.finished())
      << "round " << machines.round() << " of " << machines.total_rounds() << ", node 0 is "
      << Name(machines.peer(0)->state()) << " at " << sim::ToSeconds(runtime.loop.Now()) << " s";
}

// Node 1's result of the first round is not finite; the next update may be lost with its
// connection.
void BreakAResult(Cluster& c, bool lost) {
  c.runtime.script = [&c, lost, once = false](NodeId from, NodeId to,
                                              Message& m) mutable -> sim::Time {
    auto* offer = std::get_if<Offer>(&m);
    if (offer && from == 1 && offer->span.round == 1) {
      Refill(offer->blocks[0], *c.table, std::nan(""));
      return milliseconds(10);
    }
    if (lost && to == 1 && !once && std::holds_alternative<Update>(m)) {
      once = true;  // the update is lost with the connection
      c.runtime.loop.After(milliseconds(1), [&c] { c.coordinator->OnLost(1, "gone"); });
      c.runtime.loop.After(milliseconds(2), [&c] { c.peers[1]->Rejoin(); });
      return sim::kNever;
    }
    return milliseconds(10);
  };
}

// A result that was not finite leaves moments that are not finite either.
TEST(Resume, WordThatAResultWasNotFiniteSurvivesALostConnection) {
  CoordinatorConfig config;
  config.schedule = {.total_steps = 9, .every = 3};
  config.patience = seconds(100);
  Cluster undisturbed(2, config);
  BreakAResult(undisturbed, false);
  undisturbed.Run();
  ASSERT_EQ(undisturbed.nodes[1]->resets, 1);
  std::size_t steps = undisturbed.nodes[1]->trained_steps.size();
  Cluster c(2, config);
  BreakAResult(c, true);
  c.Run();
  ASSERT_TRUE(c.coordinator->finished());
  EXPECT_EQ(c.nodes[1]->trained_steps.size(), steps);
  // FakeNode counts resets but not when: the reset must come with round 2's order.
  EXPECT_EQ(c.nodes[1]->resets, 1);
}

// How many steps it had trained when it was told to forget.
class Watched final : public Node {
 public:
  explicit Watched(FakeNode& below) : below_(below) {}
  const std::vector<BlockId>& trainable() const override { return below_.trainable(); }
  void SetTrainable(std::vector<BlockId> ids, bool keep) override {
    below_.SetTrainable(std::move(ids), keep);
  }
  TrainResult TrainSteps(std::int64_t first, int steps, const std::atomic<bool>& stop) override {
    return below_.TrainSteps(first, steps, stop);
  }
  void SkipSteps(std::int64_t steps) override { below_.SkipSteps(steps); }
  std::vector<NodeBlock> Read(std::span<const BlockId> ids, bool moments) const override {
    return below_.Read(ids, moments);
  }
  void Apply(std::span<const NodeBlock> blocks, double keep) override {
    below_.Apply(blocks, keep);
  }
  void ResetOptimizer(std::span<const BlockId> ids) override {
    reset_after = static_cast<int>(below_.trained_steps.size());
    below_.ResetOptimizer(ids);
  }
  StateBytes Save() const override { return below_.Save(); }
  void Load(std::string_view state) override { below_.Load(state); }
  int reset_after = -1;

 private:
  FakeNode& below_;
};

TEST(Resume, TheOptimiserIsForgottenBeforeTheNextRoundAlthoughTheConnectionWasLost) {
  for (const bool lost : {false, true}) {
    CoordinatorConfig config;
    config.schedule = {.total_steps = 9, .every = 3};
    config.patience = seconds(100);
    Cluster c(2, config);
    Watched node(*c.nodes[1]);
    PeerConfig own;
    own.node = 1;
    own.scenario_hash = "same";
    own.world_hash = WorldHash(c.published[0].world);
    own.step_time = [](std::int64_t) { return seconds(1); };
    c.peers[1] =
        std::make_unique<Peer>(own, node, c.published[0].world, c.runtime.endpoint(1), c.stop);
    BreakAResult(c, lost);
    c.Run();
    ASSERT_TRUE(c.coordinator->finished());
    EXPECT_EQ(node.reset_after, 3) << (lost ? "with a lost connection" : "undisturbed");
  }
}

}  // namespace
}  // namespace spes::trainer
