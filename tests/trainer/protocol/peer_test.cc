// A peer alone, told by hand what a coordinator may say.
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "tests/trainer/protocol/fake_node.h"
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

}  // namespace
}  // namespace spes::trainer
