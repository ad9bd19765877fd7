// A peer alone, told by hand what a coordinator may say.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/protocol/fake_node.h"
#include "tests/trainer/protocol/runtime_above.h"
#include "tests/trainer/protocol/scripted_runtime.h"
#include "trainer/checkpoint/memory_peer_store.h"
#include "trainer/protocol/peer.h"

namespace spes::trainer {
namespace {

using std::chrono::seconds;

// Told, while it computes, to go back, since its order has become another one; then, before it is
// done, it is let in to a later round.
TEST(Peer, APeerThatIsLetInToALaterRoundDoesNotGoBackAnyMore) {
  ScriptedRuntime runtime;
  const auto table = MakeTinyTable(1, 4);
  const World world = MakeTinyWorld(table);
  FakeNode node(world, {0, 1, 2}, 1);
  MemoryPeerStore store;
  std::atomic<bool> stop{false};
  PeerConfig config;
  config.scenario_hash = "same";
  config.step_time = [](std::int64_t) { return seconds(1); };
  config.store = &store;
  Peer peer(config, node, world, runtime.endpoint(0), stop);
  std::vector<Message> sent;
  runtime.Connect(kCoordinator, [&](NodeId, const Message& m) { sent.push_back(m); });
  const auto all = [&](Version version) {
    std::vector<SentBlock> blocks;
    for (BlockId id = 0; id < table->size(); ++id) {
      blocks.push_back({id, version, world.blocks[static_cast<std::size_t>(id)].data});
    }
    return blocks;
  };
  const auto run_for = [&](sim::Time d) {
    bool over = false;
    runtime.loop.After(d, [&] { over = true; });
    while (!over) runtime.loop.Step();
  };
  peer.Start();
  run_for(seconds(1));
  peer.OnMessage(Admit{all(1), RoundOrder{.span = {2, 4, 60}}, 7, false, 0, 1});  // 60 s of work
  run_for(seconds(1));
  peer.Rejoin();  // the coordinator began anew; now the blocks are given out otherwise
  run_for(seconds(1));
  peer.OnMessage(Admit{all(1), RoundOrder{.span = {2, 4, 60}, .trains = std::vector<BlockId>{0, 1}},
                       7, false, 0, 1});
  run_for(seconds(1));
  peer.Rejoin();  // its connection was lost; meanwhile the others have ended the round
  run_for(seconds(1));
  peer.OnMessage(Admit{all(2), RoundOrder{.span = {3, 64, 3}, .trains = std::vector<BlockId>{0, 1}},
                       7, false, 0, 1});
  sent.clear();
  run_for(seconds(200));
  // Now the coordinator answers whatever the peer has said.
  for (const Message& m : std::vector<Message>(sent)) {
    if (!std::holds_alternative<Join>(m)) continue;
    peer.OnMessage(Admit{all(2),
                         RoundOrder{.span = {3, 64, 3}, .trains = std::vector<BlockId>{0, 1}}, 7,
                         false, 0, 1});
  }
  run_for(seconds(200));
  bool offered = false;
  for (const Message& m : sent) {
    const auto* offer = std::get_if<Offer>(&m);
    offered |= offer && offer->span.round == 3;
  }
  EXPECT_TRUE(offered) << "it is " << Name(peer.state()) << " for ever";
}

// What it was before it began anew is another's.
TEST(Peer, AnAdmissionOfAnotherIncarnationIsNotItsOwn) {
  ScriptedRuntime runtime;
  const World world = MakeTinyWorld(MakeTinyTable(1, 2));
  FakeNode node(world, {0, 1, 2}, 1);
  std::atomic<bool> stop{false};
  PeerConfig config;
  config.incarnation = 5;
  Peer peer(config, node, world, runtime.endpoint(0), stop);
  runtime.Connect(kCoordinator, [](NodeId, const Message&) {});
  peer.Start();
  peer.OnMessage(Admit{{}, RoundOrder{.span = {1, 1, 3}}, 7, false, 0, 4});
  EXPECT_EQ(peer.state(), PeerState::kJoining);
  peer.OnMessage(Admit{{}, RoundOrder{.span = {1, 1, 3}}, 7, false, 0, 5});
  EXPECT_EQ(peer.state(), PeerState::kComputing);
}

// The world that it starts from would be memory for all that it does not train, twice.
TEST(Peer, OnlyWhereRoundsOverlapItHoldsWhatItReferredTo) {
  for (const bool overlaps : {false, true}) {
    ScriptedRuntime runtime;
    World world = MakeTinyWorld(MakeTinyTable(1, 2));
    FakeNode node(world, {0, 1, 2}, 1);
    MemoryPeerStore store;
    std::atomic<bool> stop{false};
    const auto users = [&world] { return world.blocks[0].data.use_count(); };
    const long before = users();
    PeerConfig config;
    config.store = &store;
    config.overlaps = overlaps;
    const Peer peer(config, node, world, runtime.endpoint(0), stop);
    EXPECT_EQ(users() - before, overlaps ? 1 : 0);
  }
}

// Back in the state before a round it still refers to what it has adopted since.
TEST(Peer, WhoGoesBackDoesNotHoldWhatItReferredToThen) {
  ScriptedRuntime runtime;
  const auto table = MakeTinyTable(1, 2);
  const World world = MakeTinyWorld(table);
  FakeNode node(world, {0, 1}, 1);
  MemoryPeerStore store;
  std::atomic<bool> stop{false};
  PeerConfig config;
  config.store = &store;
  config.step_time = [](std::int64_t) { return seconds(1); };
  Peer peer(config, node, world, runtime.endpoint(0), stop);
  std::vector<Join> joins;
  runtime.Connect(kCoordinator, [&joins](NodeId, const Message& m) {
    if (const auto* join = std::get_if<Join>(&m)) joins.push_back(*join);
  });
  peer.Start();
  peer.OnMessage(Admit{{{2, 1, node.Filled(2, 9)}}, RoundOrder{.span = {1, 1, 3}}, 7, false, 0, 1});
  runtime.loop.Run();
  ASSERT_EQ(peer.state(), PeerState::kWaiting);
  peer.Rejoin();
  // The same round, otherwise: back to the first world, of which it holds the expert no more.
  peer.OnMessage(
      Admit{{}, RoundOrder{.span = {1, 1, 3}, .trains = std::vector<BlockId>{0}}, 7, false, 0, 1});
  runtime.loop.Run();
  ASSERT_EQ(node.First(2), 9);
  EXPECT_EQ(joins.back().held, (std::vector<Version>{0, 0, -1}));
}

// A peer whose process ends after it has kept round `last`; its codes are made anew, so that it has
// to do the round again.
class BegunAnew {
 public:
  explicit BegunAnew(const std::vector<Admit>& admissions) {
    config_.scenario_hash = "same";
    config_.step_time = [](std::int64_t) { return seconds(1); };
    config_.store = &store_;
    config_.codec = {.kind = CodecKind::kInt8, .group = 4};
    runtime_.Connect(kCoordinator, [this](NodeId, const Message& m) {
      if (const auto* join = std::get_if<Join>(&m)) joins.push_back(*join);
    });
    Begin();
    for (const Admit& admit : admissions) {
      peer_->Rejoin();
      peer_->OnMessage(admit);
      runtime_.loop.Run();
    }
    first = std::move(node);
    config_.incarnation = 2;
    Begin();
    Admit again = admissions.back();
    for (std::uint64_t life : {2, 3}) {
      again.incarnation = life;
      peer_->OnMessage(again);
      runtime_.loop.Run();
    }
  }
  std::vector<Join> joins;
  std::unique_ptr<FakeNode> first, node;
  std::vector<std::int32_t> kept() const { return store_.Rounds(); }

 private:
  void Begin() {
    peer_.reset();
    node = std::make_unique<FakeNode>(world_, std::vector<BlockId>{0, 1}, 1);
    peer_ = std::make_unique<Peer>(config_, *node, world_, runtime_.endpoint(0), stop_);
    peer_->Start();
    runtime_.loop.Run();
  }
  ScriptedRuntime runtime_;
  World world_ = MakeTinyWorld(MakeTinyTable(1, 2));
  MemoryPeerStore store_;
  std::atomic<bool> stop_{false};
  PeerConfig config_;
  std::unique_ptr<Peer> peer_;
};

// It was away for rounds 6 and 7.
TEST(Peer, WhoGoesBackDoesSoToTheStateThatItHasHoweverLongAgo) {
  const BegunAnew c({Admit{{}, RoundOrder{.span = {5, 13, 3}}, 7, false, 0, 1},
                     Admit{{}, RoundOrder{.span = {8, 22, 3}}, 7, false, 3, 1}});
  ASSERT_EQ(c.kept(), (std::vector<std::int32_t>{8, 5}));
  EXPECT_EQ(c.joins.back().round, 5);
  EXPECT_EQ(c.node->trained_steps.size(), 3u + 3u) << "in rounds 5 and 8, once";
  EXPECT_EQ(c.node->skipped, 0);
}

// Its disk was lost: it has joined in round 5 after four rounds of three steps.
TEST(Peer, WhoGoesBackToItsFirstStateGoesOnInItsDataWhereItWas) {
  const BegunAnew c({Admit{{}, RoundOrder{.span = {5, 13, 3}}, 7, false, 12, 1}});
  ASSERT_EQ(c.kept(), (std::vector<std::int32_t>{5, 0}));
  EXPECT_EQ(c.first->skipped, 12);
  EXPECT_EQ(c.joins.back().round, 0);
  EXPECT_EQ(c.node->trained_steps.size(), 3u);
  EXPECT_EQ(c.node->skipped, 12);
}

// The newest of its states is damaged.
class NewestDamaged final : public PeerStore {
 public:
  explicit NewestDamaged(PeerStore& below) : below_(below) {}
  void Write(std::int32_t round, const StateBytes& state) override { below_.Write(round, state); }
  std::vector<std::int32_t> Rounds() const override { return below_.Rounds(); }
  std::optional<std::string> Read(std::int32_t round) const override {
    return round == Rounds().front() ? std::nullopt : below_.Read(round);
  }

 private:
  PeerStore& below_;
};

TEST(Peer, WhoseNewestStateIsDamagedTakesUpTheOneBefore) {
  ScriptedRuntime runtime;
  const World world = MakeTinyWorld(MakeTinyTable(1, 2));
  MemoryPeerStore whole;
  NewestDamaged store(whole);
  std::atomic<bool> stop{false};
  PeerConfig config;
  config.scenario_hash = "same";
  config.store = &whole;
  config.step_time = [](std::int64_t) { return seconds(1); };
  std::vector<Join> joins;
  runtime.Connect(kCoordinator, [&joins](NodeId, const Message& m) {
    if (const auto* join = std::get_if<Join>(&m)) joins.push_back(*join);
  });
  FakeNode node(world, {0, 1}, 1);
  Peer peer(config, node, world, runtime.endpoint(0), stop);
  peer.Start();
  for (const std::int32_t round : {1, 2}) {
    peer.Rejoin();
    peer.OnMessage(Admit{{}, RoundOrder{.span = {round, 3 * round - 2, 3}}, 7, false, 0, 1});
    runtime.loop.Run();
  }
  ASSERT_EQ(whole.Rounds(), (std::vector<std::int32_t>{2, 1}));
  config.store = &store;
  FakeNode again(world, {0, 1}, 1);
  Peer other(config, again, world, runtime.endpoint(1), stop);
  other.Start();
  runtime.loop.Run();
  EXPECT_EQ(joins.back().round, 1);
  EXPECT_EQ(again.trained_steps.size(), 3u);
}

// What coding has lost is owed to those who have the rest, in whatever round that counted.
TEST(Peer, WhatCodingHasLostIsOwedIfTheResultCounted) {
  for (const bool counted : {false, true}) {
    ScriptedRuntime runtime;
    const World world = MakeTinyWorld(MakeTinyTable(1, 2));
    std::atomic<bool> stop{false};
    PeerConfig config;
    config.step_time = [](std::int64_t) { return seconds(1); };
    config.codec = {.kind = CodecKind::kBf16, .error_feedback = true};
    std::vector<double> offered;
    runtime.Connect(kCoordinator, [&offered](NodeId, const Message& m) {
      if (const auto* offer = std::get_if<Offer>(&m)) {
        offered.push_back(offer->blocks[0].data->as<double>()[0]);
      }
    });
    FakeNode node(world, {0, 1}, 1.00625 / 3);  // 0.4 of the last digit is lost
    Peer peer(config, node, world, runtime.endpoint(0), stop);
    peer.Start();
    peer.OnMessage(Admit{{}, RoundOrder{.span = {1, 1, 3}}, 7, false, 0, 1});
    runtime.loop.Run();
    const double lost = 2.00625 - offered.at(0);
    ASSERT_NE(lost, 0);
    // It was late: the world is that after round 2.
    std::vector<SentBlock> blocks;
    for (const BlockId id : {0, 1, 2}) blocks.push_back({id, 2, node.Filled(id, 1)});
    peer.OnMessage(Update{2, 0, false, blocks, RoundOrder{.span = {3, 7, 3}}, counted});
    runtime.loop.Run();
    // The same steps from the same value: what was lost comes on top, or nothing does.
    EXPECT_EQ(offered.at(1) == offered.at(0), !counted);
  }
}

// Work is done when its time is over, as late as a pool may do it.
class Late final : public RuntimeAbove {
 public:
  using RuntimeAbove::RuntimeAbove;
  void Compute(std::function<void()> work, sim::Time charged, std::function<void()> done) override {
    below_.After(charged, [work = std::move(work), done = std::move(done)] {
      work();
      done();
    });
  }
};

// What is published while it trains is not what it has trained from. A lie is counted from that.
TEST(Peer, WhatComesWhileItTrainsDoesNotChangeWhatItOffers) {
  ScriptedRuntime runtime;
  const World world = MakeTinyWorld(MakeTinyTable(1, 2));
  MemoryPeerStore store;
  std::atomic<bool> stop{false};
  PeerConfig config;
  config.scenario_hash = "same";
  config.store = &store;
  config.step_time = [](std::int64_t) { return seconds(1); };
  config.poison = {.kind = PoisonKind::kScale, .factor = 2};
  runtime.Connect(kCoordinator, [](NodeId, const Message&) {});
  Late late(runtime.endpoint(0));
  FakeNode node(world, {0, 1}, 1);
  Peer peer(config, node, world, late, stop);
  peer.Start();
  peer.OnMessage(Admit{{}, RoundOrder{.span = {1, 1, 3}}, 7, false, 0, 1});
  peer.Rejoin();
  peer.OnMessage(
      Admit{{{0, 1, node.Filled(0, 50)}}, RoundOrder{.span = {2, 4, 9}}, 7, false, 0, 1});
  while (store.Rounds().front() == 0) runtime.loop.Step();
  ASSERT_EQ(store.Rounds().front(), 1);
  FakeNode again(world, {0, 1}, 1);
  Peer other(config, again, world, runtime.endpoint(1), stop);
  EXPECT_NO_THROW(other.Start()) << "what it has kept is not what it has offered";
}

}  // namespace
}  // namespace spes::trainer
