// Peers that are late, lost, refused, or begin anew.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <utility>

#include "tests/trainer/protocol/cluster.h"

namespace spes::trainer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

// Another process in the place of a node's.
void BeginAnew(Cluster& c, NodeId node) {
  const auto n = static_cast<std::size_t>(node);
  PeerConfig anew;
  anew.node = node;
  anew.scenario_hash = "same";
  anew.world_hash = WorldHash(c.published[0].world);
  anew.step_time = [](std::int64_t) { return seconds(1); };
  anew.incarnation = 2;
  c.peers[n] = std::make_unique<Peer>(anew, *c.nodes[n], c.published[0].world,
                                      c.runtime.endpoint(node), c.stop);
  c.peers[n]->Start();
}

TEST(Membership, ALostNodeDoesNotBlockTheOthers) {
  Cluster c(3);
  c.runtime.script = [&](NodeId from, NodeId, Message& m) -> sim::Time {
    if (from == 1 && std::holds_alternative<Offer>(m)) {
      c.runtime.loop.After(seconds(20), [&c] { c.coordinator->OnLost(1, "silent"); });
      return sim::kNever;
    }
    return milliseconds(10);
  };
  c.Run();
  EXPECT_TRUE(c.coordinator->finished());
  EXPECT_EQ(c.WorldValue(0), 1 + 2 * 6);  // mean of 3·1 and 3·3
  EXPECT_EQ(c.WorldValue(3), 4);
  EXPECT_THAT(c.recorder.Events("lost"), ElementsAre("silent"));
}

TEST(Membership, AnOwnerThatBeganAnewAfterContributingIsSentItsOwnExperts) {
  Cluster c(2);
  bool once = true;
  c.runtime.script = [&](NodeId from, NodeId, Message& m) -> sim::Time {
    if (from == 1 && std::holds_alternative<Offer>(m) && once) {
      once = false;
      c.runtime.loop.After(milliseconds(100), [&c] {  // node 1's process begins anew
        c.nodes[1]->Change([](double& x) { x = -7; });
        BeginAnew(c, 1);
      });
      return milliseconds(10);
    }
    return from == 0 && std::holds_alternative<Offer>(m) ? seconds(1) : milliseconds(10);
  };
  c.Run();
  EXPECT_TRUE(c.coordinator->finished());
  EXPECT_EQ(c.WorldValue(0), 1 + 2 * 4.5);
  EXPECT_EQ(c.WorldValue(3), 4 + 12);
  EXPECT_THAT(c.recorder.Events("lost"), ElementsAre("began anew"));
}

// It comes once more, late: a network may repeat what it carries.
TEST(Membership, AJoinOfWhatAPeerWasBeforeItBeganAnewChangesNothing) {
  Cluster c(2);
  std::optional<Join> first;
  bool once = true;
  c.runtime.script = [&](NodeId from, NodeId, Message& m) -> sim::Time {
    if (from == 1 && std::holds_alternative<Join>(m) && !first) first = std::get<Join>(m);
    if (from == 1 && std::holds_alternative<Offer>(m) && std::exchange(once, false)) {
      c.runtime.loop.After(milliseconds(100), [&c] { BeginAnew(c, 1); });
      c.runtime.loop.After(milliseconds(500), [&] { c.coordinator->OnMessage(1, *first); });
    }
    return from == 0 && std::holds_alternative<Offer>(m) ? seconds(2) : milliseconds(10);
  };
  c.Run();
  EXPECT_TRUE(c.coordinator->finished());
  EXPECT_THAT(c.recorder.Events("lost"), ElementsAre("began anew"));
}

// What was wrong with a result of an earlier round is not why there is none of this one.
TEST(Membership, ADamagedResultThatIsLateIsNotWhatEndsTheNextRound) {
  CoordinatorConfig config;
  config.deadline = seconds(4);
  Cluster c(2, config);
  c.runtime.script = [&](NodeId from, NodeId, Message& m) -> sim::Time {
    auto* offer = std::get_if<Offer>(&m);
    if (!offer || from != 1) return milliseconds(10);
    ++offer->blocks[0].checksum;
    return seconds(2);
  };
  c.runtime.loop.After(seconds(6), [&c] {
    c.coordinator->OnLost(0, "silent");
    c.coordinator->OnLost(1, "silent");
  });
  try {
    c.Run();
    FAIL();
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "round 2: no upload can be used; no peer is left");
  }
  EXPECT_THAT(c.recorder.Events("late"), ElementsAre("result of round 1"));
}

TEST(Membership, APeerThatWasGivenUpWronglyJoinsAgain) {
  Cluster c(2);
  c.runtime.loop.After(milliseconds(500), [&c] { c.coordinator->OnLost(1, "silent"); });
  c.runtime.script = [&](NodeId from, NodeId, Message& m) -> sim::Time {
    return from == 0 && std::holds_alternative<Offer>(m) ? seconds(2) : milliseconds(10);
  };
  c.Run();
  EXPECT_TRUE(c.coordinator->finished());
  EXPECT_EQ(c.recorder.rounds[0].members, 2);
  EXPECT_EQ(c.WorldValue(0), 1 + 2 * 4.5);  // it did round 1 again, from what was published
  EXPECT_EQ(c.WorldValue(3), 4 + 12);
}

TEST(Membership, BlocksThatAreHandedOverAndGivenBackAreEvents) {
  CoordinatorConfig config;
  config.schedule.total_steps = 15;
  config.schedule.every = 3;
  config.orphans = OrphanRule::kHandedOver;
  Cluster c(2, config);
  c.runtime.script = [&](NodeId from, NodeId, Message& m) -> sim::Time {
    const auto* offer = std::get_if<Offer>(&m);
    if (!offer || from != 1 || offer->span.round != 1) return milliseconds(10);
    c.runtime.loop.After(seconds(1), [&c] { c.coordinator->OnLost(1, "silent"); });
    c.runtime.loop.After(seconds(5), [&c] { c.peers[1]->Rejoin(); });
    return sim::kNever;
  };
  c.Run();
  EXPECT_TRUE(c.coordinator->finished());
  EXPECT_THAT(c.recorder.Events("handed over"),
              ElementsAre("it trains for lost nodes: layer 0 expert 2, layer 0 expert 3"));
  EXPECT_THAT(c.recorder.Events("given back"),
              ElementsAre("it trains no more: layer 0 expert 2, layer 0 expert 3"));
}

TEST(Membership, APeerThatNeverJoinsDoesNotBlockTheOthers) {
  CoordinatorConfig config;
  config.deadline = seconds(10);
  Cluster c(3, config);
  c.runtime.script = [](NodeId from, NodeId, Message&) -> sim::Time {
    return from == 1 ? sim::kNever : milliseconds(10);
  };
  c.Run();
  EXPECT_TRUE(c.coordinator->finished());
  EXPECT_EQ(c.WorldValue(0), 1 + 2 * 6);
  EXPECT_NEAR(c.recorder.rounds[0].start_s, 10.01, 1e-9);

  Cluster lost(3);  // without a deadline, once it is known to be lost
  lost.runtime.script = c.runtime.script;
  lost.runtime.loop.After(seconds(3), [&lost] { lost.coordinator->OnLost(1, "no answer"); });
  lost.Run();
  EXPECT_TRUE(lost.coordinator->finished());
  EXPECT_EQ(lost.WorldValue(0), 1 + 2 * 6);
}

TEST(Membership, WhoJoinsWhenAllIsOverIsToldSo) {
  Cluster c(2);
  c.runtime.script = [](NodeId from, NodeId, Message& m) -> sim::Time {
    return from == 1 && std::holds_alternative<Join>(m) ? seconds(100) : milliseconds(10);
  };
  c.runtime.loop.After(seconds(1), [&c] { c.coordinator->OnLost(1, "no answer"); });
  c.Run();
  EXPECT_TRUE(c.coordinator->finished());
  EXPECT_EQ(c.peers[1]->state(), PeerState::kFinished);
  EXPECT_EQ(c.WorldValue(0), 1 + 6);
}

TEST(Membership, AQuorumEndsARoundAndALateResultIsDropped) {
  CoordinatorConfig config;
  config.quorum = 2;
  Cluster c(3, config);
  c.runtime.script = [&](NodeId from, NodeId, Message& m) -> sim::Time {
    const auto* offer = std::get_if<Offer>(&m);
    return offer && from == 2 && offer->span.round == 1 ? seconds(2) : milliseconds(10);
  };
  c.Run();
  EXPECT_TRUE(c.coordinator->finished());
  EXPECT_EQ(c.recorder.rounds[0].arrived, 2);
  EXPECT_EQ(c.recorder.rounds[1].late, 1);
  EXPECT_EQ(c.WorldValue(0), 1 + 2 * 4.5);
  EXPECT_EQ(c.WorldValue(5), 6);
}

// Node 2's result of round 1 comes in round 2. Its connection may be lost, and it joins again.
TEST(Membership, APeerIsToldWhetherItsResultCounted) {
  for (const LateRule late : {LateRule::kDrop, LateRule::kNextRound}) {
    for (const bool lost : {false, true}) {
      CoordinatorConfig config;
      config.schedule = {.total_steps = 12, .every = 3};
      config.quorum = 2;
      config.late = late;
      config.patience = seconds(100);
      Cluster c(3, config);
      std::vector<bool> told;
      bool honest = true;
      c.runtime.script = [&](NodeId from, NodeId to, Message& m) -> sim::Time {
        const auto* offer = std::get_if<Offer>(&m);
        if (offer && from == 2 && offer->span.round == 1) return seconds(2);
        const auto* update = std::get_if<Update>(&m);
        if (update && to < 2 && update->version == 1) honest &= update->counted;
        if (update && to == 2) {
          told.push_back(update->counted);
          if (lost && told.size() == 1) {  // what it is told does not come
            c.runtime.loop.After(milliseconds(1), [&c] { c.coordinator->OnLost(2, "gone"); });
            c.runtime.loop.After(milliseconds(2), [&c] { c.peers[2]->Rejoin(); });
            return sim::kNever;
          }
        }
        const auto* admit = std::get_if<Admit>(&m);
        if (admit && to == 2 && !told.empty()) told.push_back(admit->counted);
        return milliseconds(10);
      };
      c.Run();
      ASSERT_TRUE(c.coordinator->finished());
      EXPECT_TRUE(honest);
      ASSERT_GE(told.size(), 2u);
      EXPECT_EQ(told[0], late == LateRule::kNextRound);
      if (lost) {
        EXPECT_EQ(told[1], told[0]);
      }
    }
  }
}

TEST(Membership, ADeadlineEndsARoundWithWhatHasArrived) {
  CoordinatorConfig config;
  config.deadline = seconds(10);
  Cluster c(3, config);
  c.runtime.script = [&](NodeId from, NodeId, Message& m) -> sim::Time {
    return from == 0 && std::holds_alternative<Offer>(m) ? seconds(60) : milliseconds(10);
  };
  c.Run();
  EXPECT_TRUE(c.coordinator->finished());
  EXPECT_EQ(c.WorldValue(0), 1 + 2 * 7.5);
  EXPECT_NEAR(c.recorder.rounds[0].end_s - c.recorder.rounds[0].start_s, 10, 1e-9);
}

TEST(Membership, AnotherScenarioIsRefused) {
  Cluster c(2);
  c.runtime.script = [&](NodeId from, NodeId, Message& m) -> sim::Time {
    if (auto* join = std::get_if<Join>(&m); join && from == 1) join->scenario_hash = "other";
    return milliseconds(10);
  };
  try {
    c.Run();
    FAIL();
  } catch (const NotOfThisRun& e) {
    EXPECT_STREQ(
        e.what(),
        "the coordinator refuses node 1: its scenario other is not the coordinator's same");
  }
}

TEST(Membership, WhoStartsFromAnotherModelIsSentAllOfIt) {
  Cluster c(2);
  c.runtime.script = [&](NodeId from, NodeId, Message& m) -> sim::Time {
    if (auto* join = std::get_if<Join>(&m); join && from == 1) join->world_hash = "none";
    return milliseconds(10);
  };
  c.nodes[1]->Change([](double& x) { x = -7; });
  c.Run();
  EXPECT_EQ(c.WorldValue(0), 1 + 2 * 4.5);
  EXPECT_EQ(c.WorldValue(4), 5 + 12);
}

TEST(Membership, AMemberThatSaysNothingDoesNotHoldUpTheEnd) {
  CoordinatorConfig config;
  config.deadline = seconds(10);
  config.patience = seconds(20);
  Cluster c(3, config);
  c.runtime.script = [](NodeId from, NodeId, Message& m) -> sim::Time {
    return from == 2 && std::holds_alternative<Offer>(m) ? sim::kNever : milliseconds(10);
  };
  c.Run();
  EXPECT_EQ(c.coordinator->phase(), CoordinatorPhase::kFinished);
  EXPECT_TRUE(c.coordinator->finished());
}

// Node 0 is lost while it sends its result of the first round and node 1's is not finite.
void LoseOneRefuseTheOther(Cluster& c) {
  c.runtime.script = [&c](NodeId from, NodeId, Message& m) -> sim::Time {
    auto* offer = std::get_if<Offer>(&m);
    if (!offer || offer->span.round > 1) return milliseconds(10);
    if (from == 0) return c.runtime.loop.Now() < seconds(4) ? sim::kNever : milliseconds(10);
    Refill(offer->blocks[0], *c.table, std::nan(""));
    return milliseconds(10);
  };
  c.runtime.loop.After(seconds(4), [&c] { c.coordinator->OnLost(0, "gone"); });  // until 9 s
}

TEST(Membership, ARefusedUploadDoesNotEndTheRunWhileOthersMayComeBack) {
  CoordinatorConfig config;
  config.patience = seconds(5);
  Cluster c(2, config);
  LoseOneRefuseTheOther(c);
  c.runtime.loop.After(seconds(13), [&c] { c.peers[0]->Rejoin(); });
  EXPECT_NO_THROW(c.Run());
  EXPECT_TRUE(c.coordinator->finished());
  EXPECT_EQ(c.recorder.rounds[0].arrived, 1);
  EXPECT_EQ(c.nodes[1]->resets, 1);
}

// Whoever is there is not held up for ever by one that does not come back.
TEST(Membership, ARoundOfWhichAllIsRefusedWaitsForTheLostOnceMoreAndNoLonger) {
  for (const bool deadline : {false, true}) {
    CoordinatorConfig config;
    config.patience = seconds(5);
    if (deadline) config.deadline = seconds(7);
    Cluster c(2, config);
    LoseOneRefuseTheOther(c);
    try {
      c.Run();
      FAIL() << "node 1 waits for ever";
    } catch (const std::runtime_error& e) {
      EXPECT_THAT(e.what(), testing::StartsWith("round 1: no upload can be used; node 1: "));
      EXPECT_THAT(e.what(), testing::HasSubstr("not finite"));
    }
    EXPECT_EQ(c.runtime.loop.Now(), sim::Time(seconds(14)));
  }
}

// Where nobody is there nobody is held up.
TEST(Membership, WhereEverybodyIsAwayThereIsNoEndToTheWait) {
  CoordinatorConfig config;
  config.patience = seconds(5);
  Cluster c(2, config);
  for (const NodeId n : {0, 1}) {
    c.runtime.loop.After(seconds(1), [&c, n] { c.coordinator->OnLost(n, "gone"); });
    c.runtime.loop.After(seconds(1000),
                         [&c, n] { c.peers[static_cast<std::size_t>(n)]->Rejoin(); });
  }
  c.runtime.script = [&c](NodeId, NodeId, Message& m) -> sim::Time {
    const bool lost = std::holds_alternative<Offer>(m) && c.runtime.loop.Now() < seconds(10);
    return lost ? sim::kNever : milliseconds(10);
  };
  EXPECT_NO_THROW(c.Run());
  EXPECT_TRUE(c.coordinator->finished());
}

// Node 0 trains no shared parameters here, and its experts are another's until the next round.
TEST(Membership, WhoComesBackToARoundThatHasNothingForItWaitsForTheNext) {
  CoordinatorConfig config;
  config.schedule = {.total_steps = 15, .every = 3};
  config.orphans = OrphanRule::kHandedOver;
  config.allocation.frozen_shared = {{{0}, {"layers.0.q"}}};
  Cluster c(2, config);
  int empty = 0;
  c.runtime.script = [&c, &empty](NodeId from, NodeId to, Message& m) -> sim::Time {
    const auto* offer = std::get_if<Offer>(&m);
    if (offer && from == 0 && offer->span.round == 1) {
      c.runtime.loop.After(seconds(1), [&c] { c.coordinator->OnLost(0, "silent"); });
      c.runtime.loop.After(seconds(2), [&c] { c.peers[0]->Rejoin(); });
      return sim::kNever;
    }
    if (offer && from == 1 && offer->span.round == 1) return seconds(1);
    const auto* admit = std::get_if<Admit>(&m);
    empty += to == 0 && admit && admit->order.trains && admit->order.trains->empty();
    return milliseconds(10);
  };
  c.Run();
  ASSERT_TRUE(c.coordinator->finished());
  EXPECT_EQ(empty, 0) << "it was ordered to train nothing";
  EXPECT_EQ(c.recorder.rounds[1].members, 1);
  EXPECT_EQ(c.recorder.rounds[2].members, 2);
  EXPECT_EQ(c.WorldValue(1), 2 + 3 * 2 + 9 * 1) << "node 1's in round 2, then its own again";
}

// All that is left is one for whom the round has nothing.
TEST(Membership, WhoHasNothingToTrainIsNotHeldUpForEver) {
  CoordinatorConfig config;
  config.schedule = {.total_steps = 15, .every = 3};
  config.orphans = OrphanRule::kHandedOver;
  config.patience = seconds(5);
  config.allocation.frozen_shared = {{{0}, {"layers.0.q"}}};
  for (const bool before : {false, true}) {  // node 0 is back before node 1 is given up
    Cluster c(2, config);
    c.runtime.script = [&c, before](NodeId from, NodeId, Message& m) -> sim::Time {
      const auto* offer = std::get_if<Offer>(&m);
      if (!offer) return milliseconds(10);
      if (from == 0) {
        c.runtime.loop.After(seconds(1), [&c] { c.coordinator->OnLost(0, "silent"); });
        c.runtime.loop.After(seconds(before ? 9 : 30), [&c] { c.peers[0]->Rejoin(); });
        return sim::kNever;
      }
      if (offer->span.round == 1) return milliseconds(10);
      c.runtime.loop.After(seconds(1), [&c] { c.coordinator->OnLost(1, "silent"); });
      return sim::kNever;
    };
    EXPECT_THROW(c.Run(), std::runtime_error) << before;
  }
}

// A node that is lost for good holds no values of the round that it was lost in.
TEST(Membership, NothingIsKeptForALostNode) {
  CoordinatorConfig config;
  config.schedule = {.total_steps = 15, .every = 3};
  config.offered = {.kind = CodecKind::kInt8, .differences = true, .group = 4};
  PeerConfig peer;
  peer.codec = config.offered;
  Cluster c(2, config, 2, peer);
  std::weak_ptr<const Buffer> base;
  c.runtime.script = [&](NodeId from, NodeId, Message& m) -> sim::Time {
    const auto* offer = std::get_if<Offer>(&m);
    if (!offer || from != 1 || offer->span.round != 2) return milliseconds(10);
    base = c.coordinator->world().blocks[3].data;
    c.runtime.loop.After(seconds(1), [&c] { c.coordinator->OnLost(1, "silent"); });
    return sim::kNever;
  };
  c.Run();
  ASSERT_TRUE(c.coordinator->finished());
  ASSERT_TRUE(base.lock());
  // Here: the published world and copies of it, both nodes, and peer 1.
  const long users = base.use_count();
  c.coordinator.reset();
  EXPECT_LE(users - base.use_count(), 1) << "the published world";
}

}  // namespace
}  // namespace spes::trainer
