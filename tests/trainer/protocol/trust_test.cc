// Who is believed: bounds learnt from the others.
#include "trainer/protocol/trust.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "tests/trainer/protocol/fake_node.h"

namespace spes::trainer {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TrustConfig Sizes(double bound) {
  TrustConfig config;
  config.norm_bound = bound;
  config.window = 3;
  config.strikes = 2;
  return config;
}

TrustConfig Losses(double margin) {
  TrustConfig config = Sizes(0);
  config.margin = margin;
  config.held_out = [](const World&) { return 0.0; };
  return config;
}

Evidence Of(double shared) {
  Evidence e;
  e.shared = shared;
  return e;
}

Evidence Rise(double nats) {
  Evidence e;
  e.loss_rise = nats;
  return e;
}

// A round in which these nodes, from 0, send updates of these sizes; who is refused.
std::vector<Trust::Verdict> Round(Trust& trust, int round, const std::vector<Evidence>& evidence,
                                  std::vector<Trust::Verdict>* quarantined = nullptr) {
  for (std::size_t n = 0; n < evidence.size(); ++n) {
    trust.Takes(static_cast<NodeId>(n), evidence[n]);
  }
  std::vector<Trust::Verdict> refused = trust.Judge();
  std::erase_if(refused, [](const Trust::Verdict& v) { return v.fault.empty(); });
  auto quarantine = trust.EndRound(round);
  if (quarantined) *quarantined = std::move(quarantine);
  return refused;
}

TEST(Trust, SettingsOutOfRangeAreRefused) {
  for (const double bound : {-1.0, 0.5, 1.0, std::numeric_limits<double>::infinity()}) {
    EXPECT_THROW(Trust{Sizes(bound)}, std::invalid_argument) << bound;
  }
  TrustConfig config = Sizes(2);
  config.window = 0;
  EXPECT_THROW(Trust{config}, std::invalid_argument);
  config = Sizes(2);
  config.strikes = 0;
  EXPECT_THROW(Trust{config}, std::invalid_argument);
  config = Sizes(2);
  config.margin = -1;
  EXPECT_THROW(Trust{config}, std::invalid_argument);
}

// ‖u‖ per √element of each kind, each block in units of its own reach.
TEST(Trust, SizesArePerElementAndReach) {
  const auto table = MakeTinyTable(1, 2);  // 5 shared elements, two experts of 12
  Offer offer;
  offer.span.steps = 4;
  offer.tokens = 80;
  for (BlockId id = 0; id < 3; ++id) offer.blocks.push_back({id, 0, nullptr});
  const Evidence all =
      SizesOf(offer, std::vector<double>{5 * 9., 12 * 4., 12 * 64.}, {{1., 1., 2.}}, *table);
  EXPECT_DOUBLE_EQ(all.shared, 3);
  EXPECT_DOUBLE_EQ(all.experts, std::sqrt((4 + 16) / 2.));
  EXPECT_DOUBLE_EQ(all.tokens, 20);
  EXPECT_TRUE(std::isnan(all.loss_rise));
  offer.blocks.resize(1);
  const Evidence part = SizesOf(offer, std::vector<double>{5 * 9.}, {{3.}}, *table);
  EXPECT_DOUBLE_EQ(part.shared, 1);
  EXPECT_TRUE(std::isnan(part.experts));
}

TEST(Trust, TheFirstRoundIsJudgedByItself) {
  Trust trust(Sizes(3));
  for (NodeId n = 0; n < 4; ++n) {
    EXPECT_FALSE(trust.Takes(n, Of(n == 2 ? 3.1 : 1))) << "nobody vouches for anything yet";
  }
  const auto verdicts = trust.Judge();
  ASSERT_THAT(verdicts, SizeIs(4));
  for (const auto& [node, fault] : verdicts) EXPECT_EQ(fault.empty(), node != 2) << fault;
  EXPECT_THAT(verdicts[2].fault, HasSubstr("3.1 times"));
  EXPECT_THAT(trust.Judge(), IsEmpty());
}

TEST(Trust, ThreeOthersAreTheFewestThatCanJudge) {
  Trust three(Sizes(2));
  for (int round = 1; round <= 5; ++round) {
    EXPECT_THAT(Round(three, round, {Of(1), Of(1), Of(1e6)}), IsEmpty());
  }
  Trust four(Sizes(2));
  EXPECT_THAT(Round(four, 1, {Of(1), Of(1), Of(1e6), Of(1)}), SizeIs(1));
}

TEST(Trust, LaterRoundsVouchForWhatIsLikeThem) {
  Trust trust(Sizes(3));
  Round(trust, 1, {Of(1), Of(1.2), Of(0.8), Of(1)});
  EXPECT_TRUE(trust.Takes(0, Of(3)));       // the others' median is 1
  EXPECT_FALSE(trust.Takes(1, Of(3.01)));   // waits
  EXPECT_FALSE(trust.Takes(2, Of(1e300)));  // likewise
  EXPECT_TRUE(trust.Takes(3, Of(0)));
  const auto verdicts = trust.Judge();
  ASSERT_THAT(verdicts, SizeIs(2));
  EXPECT_THAT(verdicts[0].fault, IsEmpty()) << "the median of the round's others is 3";
  EXPECT_THAT(verdicts[1].fault, HasSubstr("shared parameters"));
}

TEST(Trust, WhatIsTooLargeForAllIsNoLie) {
  Trust trust(Sizes(3));
  Round(trust, 1, {Of(1), Of(1), Of(1), Of(1)});
  EXPECT_THAT(Round(trust, 2, {Of(50), Of(60), Of(55), Of(52)}), IsEmpty());
  EXPECT_THAT(Round(trust, 3, {Of(1), Of(1), Of(1), Of(200)}), SizeIs(1));
}

// Its own results do not count: a liar cannot raise its bound step by step.
TEST(Trust, NobodyVouchesForItself) {
  Trust trust(Sizes(2));
  double size = 1;
  int refused = 0;
  for (int round = 1; round <= 20; ++round) {
    size *= 1.5;
    refused += !Round(trust, round, {Of(1), Of(1), Of(1), Of(size)}).empty();
  }
  EXPECT_EQ(refused, 19);  // only 1.5 is below the bound
}

TEST(Trust, ExpertsAndTokensAreLookedAtToo) {
  Trust trust(Sizes(2));
  std::vector<Evidence> evidence(5, Of(1));
  for (Evidence& e : evidence) e.experts = e.tokens = 1;
  evidence[3].experts = 3;
  evidence[4].tokens = 1e9;
  evidence[0].experts = Evidence::kNone;  // it trains none
  const auto refused = Round(trust, 1, evidence);
  ASSERT_THAT(refused, SizeIs(2));
  EXPECT_THAT(refused[0].fault, HasSubstr("experts"));
  EXPECT_THAT(refused[1].fault, HasSubstr("tokens"));
}

TEST(Trust, WhatIsFarBelowTheReachOfItsStepsIsNeverTooLarge) {
  TrustConfig config = Sizes(4);
  EXPECT_THAT(Round(*std::make_unique<Trust>(config), 1, {Of(0), Of(0), Of(0), Of(0.1)}),
              SizeIs(1));
  config.step_size = [](std::int64_t) { return 1.0; };
  EXPECT_THAT(Round(*std::make_unique<Trust>(config), 1, {Of(0), Of(0), Of(0), Of(0.1)}),
              IsEmpty());
  EXPECT_THAT(Round(*std::make_unique<Trust>(config), 1, {Of(0), Of(0), Of(0), Of(0.3)}),
              SizeIs(1));
}

TEST(Trust, StrikesWithinTheWindowQuarantine) {
  Trust trust(Sizes(2));  // two strikes in three rounds
  const std::vector<Evidence> good(5, Of(1));
  std::vector<Evidence> bad = good;
  bad[4] = Of(9);
  std::vector<Trust::Verdict> quarantined;
  Round(trust, 1, bad, &quarantined);
  EXPECT_THAT(quarantined, IsEmpty());
  Round(trust, 2, good, &quarantined);
  Round(trust, 3, good, &quarantined);
  Round(trust, 4, bad, &quarantined);  // the first is forgotten by now
  EXPECT_THAT(quarantined, IsEmpty());
  Round(trust, 6, bad, &quarantined);
  ASSERT_THAT(quarantined, SizeIs(1));
  EXPECT_EQ(quarantined[0].node, 4);
  EXPECT_THAT(quarantined[0].fault, HasSubstr("refused 2 times in 3 rounds"));
  EXPECT_THAT(quarantined[0].fault, HasSubstr("9 times what the others' is like"));
}

// A late one that is damaged, and one that counts, in the same round.
TEST(Trust, AResultThatIsTakenDoesNotUndoARefusal) {
  for (const bool first : {true, false}) {
    Trust trust(Sizes(2));
    std::vector<Trust::Verdict> quarantined;
    for (int round = 1; round <= 2; ++round) {
      if (first) trust.Refuse(4, "damaged");
      for (NodeId n = 0; n < 5; ++n) trust.Takes(n, Of(1));
      if (!first) trust.Refuse(4, "damaged");
      for (const auto& [node, fault] : trust.Judge()) EXPECT_EQ(fault, "");
      quarantined = trust.EndRound(round);
    }
    ASSERT_THAT(quarantined, SizeIs(1));
    EXPECT_THAT(quarantined[0].fault, HasSubstr("refused 2 times in 3 rounds"));
    EXPECT_THAT(quarantined[0].fault, HasSubstr("damaged"));
    EXPECT_EQ(trust.State()[0], 10) << "what was taken is remembered";
  }
}

TEST(Trust, RoundsOutsideTheWindowAreForgotten) {
  Trust trust(Sizes(2));
  Round(trust, 1, std::vector<Evidence>(4, Of(10)));
  for (int round = 2; round <= 4; ++round) Round(trust, round, std::vector<Evidence>(4, Of(1)));
  EXPECT_TRUE(trust.Takes(0, Of(2)));
  EXPECT_FALSE(trust.Takes(1, Of(2.1)));
}

TEST(Trust, AWorseLossIsRefusedUnlessTheOthersAreAsBad) {
  Trust trust(Losses(0.1));
  EXPECT_TRUE(trust.Takes(0, Rise(0.1)));  // by the margin alone: it takes nobody to vouch for that
  EXPECT_TRUE(trust.Takes(1, Rise(-2)));
  EXPECT_FALSE(trust.Takes(2, Rise(0.11)));
  EXPECT_THAT(trust.Judge().at(0).fault, HasSubstr("0.11 nats"));
  trust.EndRound(1);
  EXPECT_THAT(Round(trust, 2, {Rise(0.5), Rise(0.52), Rise(0.49), Rise(0.7)}), SizeIs(1));
  EXPECT_TRUE(trust.Takes(3, Rise(0.59))) << "0.5 is usual by now";
  EXPECT_FALSE(trust.Takes(2, Rise(std::numeric_limits<double>::infinity())));
  EXPECT_THAT(trust.Judge(), SizeIs(1));
}

TEST(Trust, NoFiniteLossIsNeverUsual) {
  Trust trust(Losses(0.1));
  const double none = std::numeric_limits<double>::infinity();
  EXPECT_THAT(Round(trust, 1, std::vector<Evidence>(5, Rise(none))), SizeIs(5));
}

// Whatever the order in which results come, the same are taken.
TEST(Trust, TheOrderOfArrivalDoesNotMatter) {
  const std::vector<double> sizes{1, 1.4, 6, 0.7, 2.5};
  std::vector<NodeId> order{0, 1, 2, 3, 4};
  std::vector<std::vector<double>> states;
  do {
    Trust trust(Sizes(2));
    for (int round = 1; round <= 3; ++round) {
      for (const NodeId n : order) {
        trust.Takes(n, Of(sizes[static_cast<std::size_t>((n + round) % 5)]));
      }
      trust.Judge();
      trust.EndRound(round);
    }
    std::vector<double> state = trust.State();
    std::erase_if(state, [](double x) { return std::isnan(x); });
    states.push_back(std::move(state));
  } while (std::next_permutation(order.begin(), order.end()));
  for (const auto& state : states) EXPECT_EQ(state, states.front());
}

TEST(Trust, AStateGoesOnWhereItWas) {
  Trust trust(Sizes(2));
  std::vector<Evidence> bad(5, Of(1));
  bad[4] = Of(9);
  Round(trust, 1, bad);
  const std::vector<double> state = trust.State();
  Trust again(Sizes(2));
  again.Restore(state);
  EXPECT_TRUE(again.Takes(0, Of(2)));
  EXPECT_FALSE(again.Takes(1, Of(2.1)));
  again.Judge();
  again.EndRound(2);
  std::vector<Trust::Verdict> quarantined;
  Round(again, 3, bad, &quarantined);
  EXPECT_THAT(quarantined, SizeIs(1));

  for (std::size_t n = 0; n < state.size(); ++n) {
    EXPECT_THROW(again.Restore(std::span(state).first(n)), std::invalid_argument) << n;
  }
  std::vector<double> wrong = state;
  wrong[0] = 0.5;
  EXPECT_THROW(again.Restore(wrong), std::invalid_argument);
  wrong = state;
  wrong.push_back(0);
  EXPECT_THROW(again.Restore(wrong), std::invalid_argument);
}

}  // namespace
}  // namespace spes::trainer
