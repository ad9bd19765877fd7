// Whoever is killed, whenever: the run goes on where it was and ends in the same world.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <ostream>

#include "tests/trainer/protocol/fake_node.h"
#include "tests/trainer/protocol/memory_recorder.h"
#include "tests/trainer/protocol/scripted_runtime.h"
#include "trainer/protocol/coordinator.h"
#include "trainer/protocol/peer.h"

namespace spes::trainer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// In memory, what a disk would have.
class Store final : public PeerStore {
 public:
  void Write(std::int32_t round, const std::string& state) override {
    states_[round] = state;
    while (states_.size() > 2) states_.erase(states_.begin());
  }
  std::vector<std::int32_t> Rounds() const override {
    std::vector<std::int32_t> rounds;
    for (auto it = states_.rbegin(); it != states_.rend(); ++it) rounds.push_back(it->first);
    return rounds;
  }
  std::optional<std::string> Read(std::int32_t round) const override {
    const auto found = states_.find(round);
    return found == states_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::map<std::int32_t, std::string> states_;
};

// As it would be read from a disk: nothing is shared with the one who wrote it.
CoordinatorState Copy(const CoordinatorState& state) {
  CoordinatorState copy = state;
  for (auto& velocity : copy.updater.velocity) {
    if (velocity) velocity = std::make_shared<Buffer>(velocity->Clone());
  }
  for (auto& adam : copy.updater.adam) {
    adam = std::make_shared<AdamMoments>(
        AdamMoments{adam->first.Clone(), adam->second.Clone(), adam->updates});
  }
  for (auto& [id, residual] : copy.updater.residuals) {
    residual = std::make_shared<Buffer>(residual->Clone());
  }
  return copy;
}

// A coordinator and its nodes, each of which can be killed and begun anew.
class Machines {
 public:
  Machines(int nodes, CoordinatorConfig config, PeerConfig peer)
      : config_(std::move(config)),
        peer_(std::move(peer)),
        table_(MakeTinyTable(2, 2 * nodes)),
        world_(MakeTinyWorld(table_)),
        allocation_(MakeAllocation(config_.allocation, *table_, nodes)),
        stores_(static_cast<std::size_t>(nodes)),
        nodes_(static_cast<std::size_t>(nodes)),
        peers_(static_cast<std::size_t>(nodes)) {
    config_.scenario_hash = peer_.scenario_hash = "same";
    config_.offered = peer_.codec;
    config_.patience = seconds(1000);
    peer_.published = config_.update.codec;
    peer_.world_hash = WorldHash(world_);
    peer_.step_time = [](std::int64_t) { return milliseconds(100); };
    config_.journal = [this](const CoordinatorState& state) { journal_ = Copy(state); };
    StartCoordinator();
    for (NodeId n = 0; n < nodes; ++n) StartNode(n);
  }

  void StartCoordinator() {
    coordinator_ = std::make_unique<Coordinator>(
        config_, allocation_, world_, runtime_.endpoint(kCoordinator), recorder_,
        [](const PublishedRound&) {}, journal_ ? std::optional(Copy(*journal_)) : std::nullopt);
    runtime_.Connect(kCoordinator,
                     [this](NodeId from, const Message& m) { coordinator_->OnMessage(from, m); });
  }
  void KillCoordinator() {
    runtime_.Kill(kCoordinator);
    coordinator_.reset();
    for (auto& peer : peers_) {
      if (peer) peer->OnLost();
    }
  }
  void StartNode(NodeId n) {
    auto& node = nodes_[static_cast<std::size_t>(n)];
    auto& peer = peers_[static_cast<std::size_t>(n)];
    node = std::make_unique<FakeNode>(world_, allocation_.blocks(n), 0.37 * (n + 1));
    PeerConfig own = peer_;
    own.node = n;
    own.incarnation = ++incarnations_;
    own.store = &stores_[static_cast<std::size_t>(n)];
    peer = std::make_unique<Peer>(own, *node, world_, runtime_.endpoint(n), stop_);
    runtime_.Connect(n, [&peer](NodeId, const Message& m) { peer->OnMessage(m); });
    peer->Start();
  }
  void KillNode(NodeId n) {
    runtime_.Kill(n);
    peers_[static_cast<std::size_t>(n)].reset();
    if (coordinator_) coordinator_->OnLost(n, "killed");
  }

  void At(sim::Time t, std::function<void()> f) { runtime_.loop.At(t, std::move(f)); }
  void Run() { runtime_.loop.Run(); }
  bool finished() const { return coordinator_ && coordinator_->finished(); }
  std::string Hash() const { return WorldHash(coordinator_->world()); }
  int nodes() const { return static_cast<int>(nodes_.size()); }
  const MemoryRecorder& recorder() const { return recorder_; }
  sim::Time Now() const { return runtime_.loop.Now(); }

 private:
  CoordinatorConfig config_;
  PeerConfig peer_;
  std::shared_ptr<const BlockTable> table_;
  World world_;
  Allocation allocation_;
  ScriptedRuntime runtime_;
  MemoryRecorder recorder_;
  std::atomic<bool> stop_{false};
  std::optional<CoordinatorState> journal_;
  std::vector<Store> stores_;
  std::unique_ptr<Coordinator> coordinator_;
  std::vector<std::unique_ptr<FakeNode>> nodes_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::uint64_t incarnations_ = 0;
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
    Machines all(3, GetParam().config, GetParam().peer);
    all.Run();
    EXPECT_TRUE(all.finished());
    *end = all.Now();
    return all.Hash();
  }
  // `kill` at every moment of the run, in steps that hit the middle of messages and of work.
  void KillAtEveryMoment(const std::function<void(Machines&)>& kill) {
    sim::Time end{0};
    const std::string hash = Undisturbed(&end);
    int killed = 0;
    for (sim::Time t = milliseconds(1); t < end; t += milliseconds(7)) {
      Machines all(3, GetParam().config, GetParam().peer);
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
  KillAtEveryMoment([](Machines& all) {
    all.KillCoordinator();
    all.At(all.Now() + seconds(1), [&all] { all.StartCoordinator(); });
  });
}

TEST_P(Resume, OfANode) {
  KillAtEveryMoment([](Machines& all) {
    all.KillNode(1);
    all.At(all.Now() + seconds(1), [&all] { all.StartNode(1); });
  });
}

TEST_P(Resume, OfAll) {
  KillAtEveryMoment([](Machines& all) {
    for (NodeId n = 0; n < all.nodes(); ++n) all.KillNode(n);
    all.KillCoordinator();
    all.At(all.Now() + seconds(1), [&all] { all.StartCoordinator(); });
    for (NodeId n = 0; n < all.nodes(); ++n) {
      all.At(all.Now() + seconds(2 + n), [&all, n] { all.StartNode(n); });
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Every, Resume, testing::ValuesIn(Cases()), [](const auto& info) {
  std::string name = info.param.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
});

}  // namespace
}  // namespace spes::trainer
