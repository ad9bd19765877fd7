// What a coordinator writes down of a round, and how another one goes on from that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analysis/partial_recorder.h"
#include "tests/trainer/protocol/cluster.h"
#include "tests/trainer/protocol/runtime_above.h"

namespace spes::trainer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// The states of an undisturbed run.
std::vector<CoordinatorState> StatesOf(int nodes, CoordinatorConfig config,
                                       const std::function<void(Cluster&)>& prepare = {}) {
  std::vector<CoordinatorState> states;
  config.journal = [&states](const CoordinatorState& state) { states.push_back(state); };
  Cluster c(nodes, config);
  if (prepare) prepare(c);
  c.Run();
  return states;
}

// The cluster's coordinator goes on from this state instead.
void BeginAnew(Cluster& c, CoordinatorConfig config, CoordinatorState state) {
  if (config.schedule.total_steps == 0) config.schedule = {.total_steps = 6, .every = 3};
  config.scenario_hash = "same";
  config.journal = {};
  state.world.table = c.table;  // the same table, but not the same object
  c.coordinator = std::make_unique<Coordinator>(
      config, c.allocation, c.published[0].world, c.runtime.endpoint(kCoordinator), c.recorder,
      [](const PublishedRound&) {}, std::move(state));
}

TEST(CoordinatorState, ACoordinatorThatBeganAnewBeforeAnyoneCameWaitsForAll) {
  CoordinatorConfig config;
  config.patience = seconds(10);
  std::vector<CoordinatorState> states;
  config.journal = [&states](const CoordinatorState& state) { states.push_back(state); };
  Cluster c(2, config);
  const auto late = [](NodeId from, NodeId, Message& m) -> sim::Time {
    return from == 1 && std::holds_alternative<Join>(m) ? seconds(60) : milliseconds(10);
  };
  c.runtime.script = late;
  c.Run();
  const CoordinatorState first = states.front();

  Cluster anew(2, config);
  anew.runtime.script = late;
  BeginAnew(anew, config, first);
  anew.Run();
  EXPECT_EQ(anew.Hash(), c.Hash()) << "round 1 went on without node 1, whom nobody had lost";
}

// Without patience too: whoever it knew has a minute.
TEST(CoordinatorState, WithoutPatienceTheFirstToComeDoesNotMakeTheRoundAlone) {
  const std::vector<CoordinatorState> states = StatesOf(2, {});
  ASSERT_THAT(states, SizeIs(3));
  Cluster c(2);
  BeginAnew(c, {}, states[1]);
  c.runtime.script = [](NodeId from, NodeId, Message& m) -> sim::Time {
    return from == 1 && std::holds_alternative<Join>(m) ? seconds(50) : milliseconds(10);
  };
  c.Run();
  ASSERT_TRUE(c.coordinator->finished());
  EXPECT_EQ(c.recorder.rounds.back().arrived, 2);

  Cluster alone(2);
  BeginAnew(alone, {}, states[1]);
  alone.runtime.script = [](NodeId from, NodeId, Message&) -> sim::Time {
    return from == 1 ? sim::kNever : milliseconds(10);
  };
  alone.Run();
  EXPECT_TRUE(alone.coordinator->finished());
  EXPECT_EQ(alone.recorder.rounds.back().arrived, 1);
}

TEST(CoordinatorState, WhoWasGivenUpIsNotWaitedForAgain) {
  CoordinatorConfig config;
  config.patience = seconds(1000);
  const auto states = StatesOf(3, config, [](Cluster& c) {
    c.runtime.script = [](NodeId from, NodeId, Message& m) -> sim::Time {
      return from == 2 && std::holds_alternative<Offer>(m) ? sim::kNever : milliseconds(10);
    };
    c.runtime.loop.After(seconds(1), [&c] { c.coordinator->OnLost(2, "gone"); });
  });
  EXPECT_TRUE(states[1].nodes[2].lost);
  EXPECT_FALSE(states[1].nodes[1].lost);
  Cluster c(3);
  BeginAnew(c, config, states[1]);
  c.runtime.script = [](NodeId from, NodeId, Message&) -> sim::Time {
    return from == 2 ? sim::kNever : milliseconds(10);
  };
  c.Run();
  EXPECT_TRUE(c.coordinator->finished());
  EXPECT_LT(c.recorder.rounds.back().end_s, 10);
}

// A node whose disk is lost goes on in its data where it was.
TEST(CoordinatorState, WhoHasLostItsStateGoesOnInItsData) {
  const std::vector<CoordinatorState> states = StatesOf(2, {});
  EXPECT_EQ(states[0].nodes[1].steps_done, 0);
  EXPECT_EQ(states[1].nodes[1].steps_done, 3);
  EXPECT_EQ(states[2].nodes[1].steps_done, 6);
  Cluster c(2);
  BeginAnew(c, {}, states[1]);
  c.Run();
  EXPECT_TRUE(c.coordinator->finished());
  for (const auto& node : c.nodes) {
    EXPECT_EQ(node->skipped, 3);
    EXPECT_THAT(node->trained_steps, ElementsAre(4, 5, 6));
  }
  Cluster undisturbed(2);
  undisturbed.Run();
  EXPECT_EQ(undisturbed.nodes[0]->skipped, 0);
}

TEST(CoordinatorState, WordThatAResultWasNotFiniteSurvivesTheCoordinator) {
  CoordinatorConfig config;
  const auto states = StatesOf(2, config, [](Cluster& c) {
    c.runtime.script = [&c](NodeId from, NodeId, Message& m) -> sim::Time {
      auto* offer = std::get_if<Offer>(&m);
      if (offer && from == 1 && offer->span.round == 1) {
        Refill(offer->blocks[0], *c.table, std::nan(""));
      }
      return milliseconds(10);
    };
  });
  EXPECT_FALSE(states[1].nodes[0].reset);
  EXPECT_TRUE(states[1].nodes[1].reset);
  EXPECT_FALSE(states[2].nodes[1].reset);
  Cluster c(2);
  BeginAnew(c, config, states[1]);
  c.Run();
  EXPECT_EQ(c.nodes[0]->resets, 0);
  EXPECT_EQ(c.nodes[1]->resets, 1);
}

TEST(CoordinatorState, WhoWasQuarantinedStaysOutOnTheWayToo) {
  CoordinatorState state = StatesOf(3, {})[1];
  state.nodes[2].quarantine = "it lies";
  CoordinatorConfig config;
  std::vector<std::pair<NodeId, std::string>> out;
  config.on_quarantine = [&out](NodeId node, const std::string& why) {
    out.emplace_back(node, why);
  };
  Cluster c(3);
  BeginAnew(c, config, state);
  EXPECT_THAT(out, ElementsAre(std::pair<NodeId, std::string>(2, "it lies")));
}

TEST(CoordinatorState, WhereEverybodyIsQuarantinedThereIsNothingToGoOnWith) {
  std::vector<CoordinatorState> states = StatesOf(2, {});
  for (CoordinatorState& state : states) {
    for (NodeStanding& node : state.nodes) node.quarantine = "it lies";
  }
  Cluster c(2);
  try {
    BeginAnew(c, {}, states[1]);
    FAIL() << "nobody could ever come";
  } catch (const std::invalid_argument& e) {
    EXPECT_THAT(e.what(), HasSubstr("round 1"));
    EXPECT_THAT(e.what(), HasSubstr("quarantine"));
  }
  EXPECT_NO_THROW(BeginAnew(c, {}, states[2])) << "that run is over";
}

// The computation that reduces a round is done at some time between its beginning and its end.
class Interleaving final : public RuntimeAbove {
 public:
  using RuntimeAbove::RuntimeAbove;
  // As a pool does: at some time between now and the computation's end.
  void Compute(std::function<void()> work, sim::Time charged, std::function<void()> done) override {
    pending = std::move(work);
    below_.After(charged, [this, done = std::move(done)] {
      RunPending();
      done();
    });
  }
  void RunPending() {
    if (auto work = std::exchange(pending, {})) work();
  }
  std::function<void()> pending;
};

class Slow final : public analysis::PartialRecorder {
 public:
  using PartialRecorder::Record;
  void Record(const analysis::RoundRecord&) override { on_round(); }
  std::function<void()> on_round = [] {};
};

TEST(CoordinatorState, TheStateOfARoundHasTheStepsOfThatRound) {
  CoordinatorConfig config;
  config.schedule = {.total_steps = 12, .every = 3};
  config.scenario_hash = "same";
  config.quorum = 1;
  config.late = LateRule::kNextRound;
  config.coding_time = [](std::int64_t) { return milliseconds(100); };
  config.update.codec.kind = CodecKind::kBf16;  // so that reducing takes time
  std::vector<std::pair<std::int32_t, std::int64_t>> states;
  config.journal = [&states](const CoordinatorState& state) {
    states.emplace_back(state.round, state.step);
  };
  PeerConfig peer;
  peer.published = config.update.codec;
  Cluster c(2, config, 2, peer);
  Interleaving runtime(c.runtime.endpoint(kCoordinator));
  Slow recorder;
  recorder.on_round = [&runtime] { runtime.RunPending(); };  // the pool gets to it just then
  states.clear();
  c.coordinator = std::make_unique<Coordinator>(config, c.allocation, c.published[0].world, runtime,
                                                recorder, [](const PublishedRound&) {});
  // Node 1's result comes while round 1 is being closed by node 0's.
  c.runtime.script = [](NodeId from, NodeId, Message& m) -> sim::Time {
    return from == 1 && std::holds_alternative<Offer>(m) ? milliseconds(50) : milliseconds(10);
  };
  c.Run();
  for (const auto& [round, step] : states) EXPECT_EQ(step, 3 * round) << "round " << round;
}

// What is journalled is in the log, too.
TEST(CoordinatorState, ARoundIsInTheLogBeforeItsWorldIsSavedAndBeforeTheNextOne) {
  for (const bool full : {true, false}) {  // the disk; otherwise nobody is left for round 2
    CoordinatorConfig config;
    config.scenario_hash = "same";
    config.schedule = {.total_steps = 6, .every = 3};
    std::vector<std::int32_t> journalled;
    config.journal = [&](const CoordinatorState& state) { journalled.push_back(state.round); };
    config.coding_time = [](std::int64_t) { return seconds(10); };
    config.update.codec.kind = CodecKind::kBf16;
    PeerConfig peer;
    peer.published = config.update.codec;
    Cluster undisturbed(2, config, 2, peer);
    undisturbed.Run();
    journalled.clear();
    Cluster c(2, config, 2, peer);
    c.coordinator = std::make_unique<Coordinator>(config, c.allocation, c.published[0].world,
                                                  c.runtime.endpoint(kCoordinator), c.recorder,
                                                  [&](const PublishedRound& p) {
                                                    if (full && p.round == 1)
                                                      throw std::runtime_error("disk full");
                                                  });
    if (!full) {
      c.runtime.loop.After(seconds(10), [&c] {
        for (const NodeId n : {0, 1}) c.coordinator->OnLost(n, "gone");
      });
    }
    EXPECT_THROW(c.Run(), std::runtime_error);
    EXPECT_EQ(journalled.back(), 1);
    ASSERT_THAT(c.recorder.rounds, SizeIs(1)) << (full ? "disk full" : "nobody left");
    EXPECT_EQ(c.recorder.rounds[0].round, 1);
    if (!full) continue;
    EXPECT_EQ(c.recorder.rounds[0].down_bytes, undisturbed.recorder.rounds[0].down_bytes)
        << "with the orders that go out with it";
  }
}

}  // namespace
}  // namespace spes::trainer
