// Members that lie: their results are kept out, and they themselves in the end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/trainer/protocol/cluster.h"

namespace spes::trainer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr NodeId kLiar = 2;

// The update of every block, from what is published, is multiplied by f.
void Lie(Offer& offer, const World& published, double f) {
  const BlockTable& table = *published.table;
  for (OfferedBlock& block : offer.blocks) {
    const auto from = published.blocks[static_cast<std::size_t>(block.id)].data->as<double>();
    auto values = std::make_shared<Buffer>(block.data->Clone());
    for (std::size_t i = 0; i < from.size(); ++i) {
      double& x = values->as<double>()[i];
      x = from[i] + f * (x - from[i]);
    }
    block.data = std::move(values);
    block.checksum = BlockChecksum(table[block.id], table.dtype(), *block.data);
  }
}

// Five nodes, of which one multiplies its updates by `factor` wherever `lies` says so. Round r ends
// at step 3 r.
class Village : public Cluster {
 public:
  explicit Village(CoordinatorConfig config, double factor, int rounds = 2)
      : Cluster(5, With(std::move(config), rounds)) {
    for (NodeId n = 0; n < 5; ++n) {
      runtime.Connect(n, [this, n](NodeId, const Message& m) {
        if (const auto* reject = std::get_if<Reject>(&m)) rejects.emplace_back(n, *reject);
        peers[static_cast<std::size_t>(n)]->OnMessage(m);
      });
    }
    runtime.script = [this, factor](NodeId from, NodeId, Message& m) -> sim::Time {
      auto* offer = std::get_if<Offer>(&m);
      if (!offer) return milliseconds(10);
      if (from == kLiar && lies(offer->span.round)) Lie(*offer, coordinator->world(), factor);
      return delay(from, offer->span.round);
    };
  }

  std::function<bool(std::int32_t)> lies = [](std::int32_t) { return true; };
  std::function<sim::Time(NodeId, std::int32_t)> delay = [](NodeId, std::int32_t) {
    return sim::Time(milliseconds(10));
  };
  std::vector<std::pair<NodeId, Reject>> rejects;

 private:
  static CoordinatorConfig With(CoordinatorConfig config, int rounds) {
    config.schedule = {.total_steps = 3 * rounds, .every = 3};
    return config;
  }
};

CoordinatorConfig Sizes() {
  CoordinatorConfig config;
  config.trust.norm_bound = 6;  // the honest ones add 3, 6, 12 and 15 in a round
  config.trust.strikes = 1000;
  return config;
}

// The nearer the shared block is to 100, the smaller the loss.
CoordinatorConfig Losses() {
  CoordinatorConfig config;
  config.trust.strikes = 1000;
  config.trust.margin = 0.5;
  config.trust.held_out = [](const World& world) {
    return std::abs(100 - world.blocks[0].data->as<double>()[0]);
  };
  config.trust.held_out_time = seconds(2);
  return config;
}

TEST(Distrust, ALieIsKeptOut) {
  Village without({}, 1000);
  without.Run();
  EXPECT_GT(without.WorldValue(0), 1000);

  Village c(Sizes(), 1000);
  c.Run();
  ASSERT_TRUE(c.coordinator->finished());
  EXPECT_EQ(c.WorldValue(0), 1 + 9 + 9) << "the mean of the four others, twice";
  EXPECT_EQ(c.WorldValue(1 + 2 * kLiar), 1 + 1 + 2 * kLiar) << "its experts stay as they were";
  EXPECT_EQ(c.WorldValue(1), 2 + 3 + 3);
  EXPECT_THAT(c.recorder.Events("distrusted"), SizeIs(2));
  EXPECT_THAT(c.recorder.Events("distrusted"),
              Each(HasSubstr("times what the others' is like; 6 is the bound")));
  EXPECT_THAT(c.recorder.Events("quarantine"), IsEmpty());
  for (const auto& round : c.recorder.rounds) {
    EXPECT_EQ(round.arrived, 4);
    EXPECT_EQ(round.rejected, 1);
  }
  ASSERT_THAT(c.rejects, SizeIs(2));
  EXPECT_EQ(c.rejects[0].first, kLiar);
  EXPECT_EQ(c.rejects[0].second.reason, RejectReason::kDistrusted);
  EXPECT_EQ(c.rejects[0].second.round, 1);
  // It goes on from what was published.
  EXPECT_EQ(c.nodes[kLiar]->First(1 + 2 * kLiar), 1 + 1 + 2 * kLiar + 9);
}

TEST(Distrust, HonestNodesAreLeftAlone) {
  Village plain({}, 1, 6);
  plain.Run();
  for (const CoordinatorConfig& config : {Sizes(), Losses()}) {
    Village c(config, 1, 6);
    c.Run();
    EXPECT_EQ(c.Hash(), plain.Hash());
    EXPECT_THAT(c.recorder.Events("distrusted"), IsEmpty());
  }
}

TEST(Distrust, TheOrderOfArrivalDoesNotMatter) {
  for (CoordinatorConfig config : {Sizes(), Losses()}) {
    config.trust.strikes = 2;
    const double factor = config.trust.norm_bound > 0 ? 20 : -1;
    std::vector<NodeId> order{0, 1, 2, 3, 4};
    std::vector<std::string> hashes;
    do {
      Village c(config, factor, 5);
      c.lies = [](std::int32_t round) { return round % 2 == 0; };
      c.delay = [&order](NodeId n, std::int32_t round) {
        return milliseconds(10 + 100 * order[static_cast<std::size_t>((n + round) % 5)]);
      };
      c.Run();
      ASSERT_TRUE(c.coordinator->finished());
      hashes.push_back(c.Hash());
      EXPECT_THAT(c.recorder.Events("distrusted"), SizeIs(2));
      EXPECT_THAT(c.recorder.Events("quarantine"), SizeIs(1));
    } while (std::next_permutation(order.begin(), order.end()));
    EXPECT_THAT(hashes, Each(hashes.front()));
  }
}

TEST(Distrust, AfterItsStrikesANodeIsQuarantined) {
  CoordinatorConfig config = Sizes();
  config.trust.strikes = 2;
  config.orphans = OrphanRule::kHandedOver;
  Village c(config, 1000, 5);
  c.Run();
  ASSERT_TRUE(c.coordinator->finished());
  ASSERT_THAT(c.recorder.Events("quarantine"), SizeIs(1));
  EXPECT_THAT(c.recorder.Events("quarantine")[0], HasSubstr("refused 2 times in 8 rounds"));
  EXPECT_EQ(c.peers[kLiar]->state(), PeerState::kRefused);
  EXPECT_THAT(c.peers[kLiar]->refusal(), HasSubstr("refused 2 times"));
  EXPECT_EQ(c.coordinator->quarantine(kLiar), c.peers[kLiar]->refusal());
  EXPECT_EQ(c.coordinator->quarantine(1), "");
  EXPECT_EQ(c.nodes[kLiar]->trained_steps.size(), 6u);
  EXPECT_EQ(c.recorder.rounds[2].members, 4);
  EXPECT_EQ(c.WorldValue(0), 1 + 5 * 9);
  EXPECT_GT(c.WorldValue(1 + 2 * kLiar), 1 + 1 + 2 * kLiar) << "others train its experts";

  Join join{"same", "", 2, 0, 0, {}, {}};  // its process begins anew
  c.coordinator->OnMessage(kLiar, join);
  Offer offer;
  offer.span = {5, 13, 3};
  c.coordinator->OnMessage(kLiar, offer);
  c.runtime.loop.Run();
  ASSERT_THAT(c.rejects, SizeIs(5));
  for (std::size_t i = 3; i < 5; ++i) {
    EXPECT_EQ(c.rejects[i].second.reason, RejectReason::kDistrusted);
    EXPECT_EQ(c.rejects[i].second.round, 0);
  }
}

// Whatever the round after which the coordinator begins anew, it knows whom to trust.
TEST(Distrust, QuarantineAndBoundsSurviveTheCoordinator) {
  CoordinatorConfig config = Sizes();
  config.trust.strikes = 3;
  std::vector<CoordinatorState> states;
  config.journal = [&states](const CoordinatorState& state) { states.push_back(state); };
  const auto lies = [](std::int32_t round) { return round != 2; };
  Village undisturbed(config, 1000, 6);
  undisturbed.lies = lies;
  undisturbed.Run();
  ASSERT_THAT(states, SizeIs(7));
  EXPECT_EQ(states[3].nodes[kLiar].quarantine, "");
  EXPECT_THAT(states[4].nodes[kLiar].quarantine, HasSubstr("refused 3 times"));

  config.journal = {};
  for (CoordinatorState& state : states) {
    Village c(config, 1000, 6);
    c.lies = lies;
    state.world.table = c.table;  // the same table, but not the same object
    config.schedule = {.total_steps = 18, .every = 3};
    config.scenario_hash = "same";
    c.coordinator = std::make_unique<Coordinator>(
        config, c.allocation, c.published[0].world, c.runtime.endpoint(kCoordinator), c.recorder,
        [](const PublishedRound&) {}, state);
    c.Run();
    EXPECT_TRUE(c.coordinator->finished());
    EXPECT_EQ(c.Hash(), undisturbed.Hash()) << state.round;
    EXPECT_THAT(c.recorder.Events("distrusted"), SizeIs(state.round == 0   ? 3
                                                        : state.round <= 2 ? 2
                                                        : state.round == 3 ? 1
                                                                           : 0));
    EXPECT_EQ(c.peers[kLiar]->state(), PeerState::kRefused);
  }
}

TEST(Distrust, GradientsAreLookedAtToo) {
  CoordinatorConfig config = Sizes();
  config.allocation.kind = AllocationKind::kAll;
  config.update.gradients = OptimizerConfig{.lr = 0.1, .warmup_steps = 0, .decay_steps = 10};
  Village honest(config, 1);
  honest.Run();
  EXPECT_THAT(honest.recorder.Events("distrusted"), IsEmpty());
  Village c(config, 1e4);
  c.Run();
  EXPECT_THAT(c.recorder.Events("distrusted"), SizeIs(2));

  config.trust.held_out = [](const World&) { return 0.0; };
  EXPECT_THROW(Village(config, 1), std::invalid_argument);
}

// Where all steps have become small, one that is as large as those before is too large.
TEST(Distrust, LearningRatesAreDividedOut) {
  CoordinatorConfig config = Sizes();
  for (const bool known : {false, true}) {
    if (known) config.trust.step_size = [](std::int64_t step) { return step <= 3 ? 1 : 0.1; };
    Village c(config, 1);
    c.runtime.script = [&c](NodeId from, NodeId, Message& m) -> sim::Time {
      auto* offer = std::get_if<Offer>(&m);
      if (offer && offer->span.round == 2 && from != kLiar)
        Lie(*offer, c.coordinator->world(), 0.1);
      return milliseconds(10);
    };
    c.Run();
    EXPECT_THAT(c.recorder.Events("distrusted"), SizeIs(known));
  }
}

// A result of round 1 that comes when twenty others are done: nobody's steps were more for that.
TEST(Distrust, WhoWaitsWithItsResultMayNotMoveFartherForIt) {
  for (const bool known : {false, true}) {
    for (const double factor : {1.0, 30.0}) {
      CoordinatorConfig config = Sizes();
      config.quorum = 4;
      config.late = LateRule::kNextRound;
      if (known) config.trust.step_size = [](std::int64_t) { return 1.0; };
      Village c(config, factor, 30);
      c.runtime.script = [&c, factor](NodeId from, NodeId, Message& m) -> sim::Time {
        auto* offer = std::get_if<Offer>(&m);
        if (!offer || from != kLiar) return milliseconds(10);
        if (offer->span.round == 1) Lie(*offer, c.coordinator->world(), factor);
        return offer->span.round == 1 ? seconds(63) : milliseconds(10);
      };
      c.Run();
      ASSERT_TRUE(c.coordinator->finished());
      ASSERT_THAT(c.recorder.Events("late"), Contains("result of round 1"));
      EXPECT_THAT(c.recorder.Events("distrusted"), SizeIs(factor > 1 ? 1 : 0))
          << (known ? "with" : "without") << " learning rates, times " << factor;
    }
  }
}

// Held-out trials.

TEST(Distrust, AStepBackwardsIsFoundOut) {
  Village sizes(Sizes(), -1);
  sizes.Run();
  EXPECT_THAT(sizes.recorder.Events("distrusted"), IsEmpty()) << "it is as large as any";

  Village c(Losses(), -1);
  c.Run();
  ASSERT_TRUE(c.coordinator->finished());
  EXPECT_EQ(c.WorldValue(0), 1 + 9 + 9);
  ASSERT_THAT(c.recorder.Events("distrusted"), SizeIs(2));
  EXPECT_THAT(c.recorder.Events("distrusted")[0], HasSubstr("9 nats above"));
}

TEST(Distrust, ALossThatIsNotANumberIsNoExcuse) {
  CoordinatorConfig config = Losses();
  config.trust.held_out = [](const World& world) {
    const double x = world.blocks[0].data->as<double>()[0];
    return x < 0 ? std::numeric_limits<double>::quiet_NaN() : 1;
  };
  Village c(config, -1, 1);
  c.Run();
  EXPECT_THAT(c.recorder.Events("distrusted"), ElementsAre(HasSubstr("inf nats above")));
  // Of a published world that has none nobody is worse.
  config.trust.held_out = [](const World&) { return std::numeric_limits<double>::quiet_NaN(); };
  Village all(config, -1, 1);
  all.Run();
  EXPECT_THAT(all.recorder.Events("distrusted"), IsEmpty());
}

// The published world while the nodes train, then five results one after the other.
TEST(Distrust, TrialsTakeTheirTime) {
  Village c(Losses(), 1, 1);
  c.Run();
  EXPECT_NEAR(c.recorder.rounds[0].end_s, 0.01 + 0.01 + 3 + 0.01 + 5 * 2, 1e-9);
  Village slow(Losses(), 1, 1);
  slow.delay = [](NodeId n, std::int32_t) { return n == 0 ? seconds(20) : milliseconds(10); };
  slow.Run();
  EXPECT_NEAR(slow.recorder.rounds[0].end_s, 0.02 + 3 + 20 + 2, 1e-9);
}

TEST(Distrust, ADeadlineDoesNotWaitForTrials) {
  for (const LateRule late : {LateRule::kDrop, LateRule::kNextRound}) {
    CoordinatorConfig config = Losses();
    config.deadline = seconds(8);  // three results in 5.02 to 8 s: two are tried out by then
    config.late = late;
    Village c(config, 1, 2);
    c.delay = [](NodeId, std::int32_t) { return seconds(1); };
    c.Run();
    ASSERT_TRUE(c.coordinator->finished());
    EXPECT_EQ(c.recorder.rounds[0].arrived, 1);
    EXPECT_NEAR(c.recorder.rounds[0].end_s - c.recorder.rounds[0].start_s, 8, 1e-9);
    EXPECT_EQ(c.recorder.rounds[0].late, 4);
    EXPECT_THAT(c.recorder.Events("late"),
                Contains(HasSubstr("result of round 1, not tried out in time")));
  }
}

TEST(Distrust, AQuorumIsOfResultsThatCount) {
  CoordinatorConfig config = Losses();
  config.quorum = 2;
  config.trust.held_out_time = milliseconds(1);
  Village c(config, -1, 1);
  c.delay = [](NodeId n, std::int32_t) { return seconds(n == kLiar ? 1 : 2 + n); };
  c.Run();
  ASSERT_TRUE(c.coordinator->finished());
  EXPECT_EQ(c.recorder.rounds[0].arrived, 2);
  EXPECT_EQ(c.recorder.rounds[0].rejected, 1);
  EXPECT_EQ(c.WorldValue(0), 1 + (3 + 6) / 2.);
}

TEST(Distrust, WhoIsLostDuringItsTrialHasContributed) {
  Village undisturbed(Losses(), 1, 1);
  undisturbed.Run();
  for (const sim::Time patience : {sim::Time{0}, sim::Time{seconds(100)}}) {
    CoordinatorConfig config = Losses();
    config.patience = patience;
    Village c(config, 1, 1);
    c.runtime.loop.After(seconds(4), [&c] { c.coordinator->OnLost(4, "gone"); });
    c.Run();
    EXPECT_EQ(c.recorder.rounds[0].arrived, 5);
    EXPECT_NEAR(c.recorder.rounds[0].end_s, 13.03, 1e-9) << "and nobody waits for it";
    EXPECT_EQ(c.Hash(), undisturbed.Hash());
  }
}

// The round waits for trials when there is nobody else to wait for.
TEST(Distrust, ALossDuringTrialsDoesNotEndTheRoundEarly) {
  Village c(Losses(), 1, 1);
  c.delay = [](NodeId n, std::int32_t) { return n == 0 ? sim::kNever : milliseconds(10); };
  c.runtime.loop.After(seconds(4), [&c] { c.coordinator->OnLost(0, "gone"); });
  c.Run();
  EXPECT_EQ(c.recorder.rounds[0].arrived, 4);
  EXPECT_NEAR(c.recorder.rounds[0].end_s, 11.03, 1e-9);
}

// Another process takes the place of node 4's, and knows nothing of what it was.
void BeginAnew(Village& c) {
  c.nodes[4]->Change([](double& x) { x = -7; });
  PeerConfig anew;
  anew.node = 4;
  anew.scenario_hash = "same";
  anew.step_time = [](std::int64_t) { return seconds(1); };
  anew.incarnation = 2;
  c.peers[4] = std::make_unique<Peer>(anew, *c.nodes[4], c.published[0].world,
                                      c.runtime.endpoint(4), c.stop);
  c.peers[4]->Start();
}

TEST(Distrust, WhoBeginsAnewDuringItsTrialIsSentItsOwnExperts) {
  Village undisturbed(Losses(), 1);
  undisturbed.Run();
  Village c(Losses(), 1);
  c.runtime.loop.After(seconds(4), [&c] { BeginAnew(c); });
  c.Run();
  ASSERT_TRUE(c.coordinator->finished());
  EXPECT_EQ(c.recorder.rounds[0].arrived, 5);
  EXPECT_EQ(c.Hash(), undisturbed.Hash());
}

// What it sent as another is not carried over into a round of its new life.
TEST(Distrust, WhoBeginsAnewDoesNotContributeWhatWasNotTriedOutInTime) {
  CoordinatorConfig config = Losses();
  config.deadline = seconds(6);  // one result is tried out by then
  config.late = LateRule::kNextRound;
  config.trust.held_out_time = seconds(2);
  Village c(config, 1);
  c.runtime.loop.After(seconds(4), [&c] { BeginAnew(c); });
  c.Run();
  ASSERT_TRUE(c.coordinator->finished());
  EXPECT_EQ(c.recorder.rounds[0].arrived, 1);
  EXPECT_EQ(c.recorder.rounds[0].late, 4);
  EXPECT_EQ(c.nodes[4]->trained_steps.front(), 1);
  EXPECT_EQ(c.nodes[4]->trained_steps.back(), 6) << "it trains the second round itself";
  for (const NodeId n : {1, 2, 3}) {
    EXPECT_EQ(c.nodes[static_cast<std::size_t>(n)]->trained_steps.size(), 3u) << n;
  }
}

}  // namespace
}  // namespace spes::trainer
