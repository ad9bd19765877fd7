// Whoever is killed, whenever: the run goes on where it was and ends in the same world.
#include <gtest/gtest.h>

#include <functional>
#include <ostream>

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

}  // namespace
}  // namespace spes::trainer
