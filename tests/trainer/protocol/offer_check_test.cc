// What members send that is not what was ordered, or cannot be: it reaches nobody.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "tests/trainer/protocol/cluster.h"

namespace spes::trainer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(OfferCheck, CodesAreReadIntoTheMemoryThatIsGivenAndLetGoOf) {
  const auto table = MakeTinyTable(1, 2);
  const CodecConfig codec{.kind = CodecKind::kBf16};
  Offer offer;
  for (const BlockId id : {0, 1}) {
    OfferedBlock block;
    block.id = id;
    Refill(block, *table, 1);
    block.code = Encode(codec, table->dtype(), (*table)[id], block.data, nullptr, nullptr).code;
    block.data = nullptr;
    offer.blocks.push_back(block);
  }
  std::vector<std::int64_t> asked;
  const OrderedOffer ordered{.blocks = {0, 1}};
  EXPECT_FALSE(DecodeOffer(codec, ordered, *table, offer, [&asked](std::int64_t bytes) {
    asked.push_back(bytes);
    return Buffer(bytes);
  }));
  EXPECT_THAT(asked, ElementsAre(table->Allocate(0).bytes(), table->Allocate(1).bytes()));
  for (const OfferedBlock& block : offer.blocks) {
    EXPECT_FALSE(block.code);
    ASSERT_TRUE(block.data);
    EXPECT_EQ(block.data->as<double>()[0], 1.0);
  }
}

TEST(OfferCheck, MomentsThatNobodyAskedForReachNoOtherNode) {
  CoordinatorConfig config;
  config.trust.norm_bound = 6;  // no help: its values are honest
  Cluster c(5, config);
  c.runtime.script = [&c](NodeId from, NodeId, Message& m) -> sim::Time {
    if (auto* offer = std::get_if<Offer>(&m); offer && from == 2) {
      const auto first = c.nodes[0]->Filled(0, 1e30), second = c.nodes[0]->Filled(0, -1.0);
      offer->blocks[0].moments =
          std::make_shared<BlockMoments>(BlockMoments{first, second, 1ll << 62});
    }
    return milliseconds(10);
  };
  c.Run();
  EXPECT_TRUE(c.coordinator->finished());
  for (const NodeId n : {0, 1, 3, 4}) EXPECT_THAT(c.nodes[n]->moments, IsEmpty()) << n;
}

// Their root would not be a number.
TEST(OfferCheck, SecondMomentsBelowZeroAreRefused) {
  CoordinatorConfig config;
  config.moments = MomentsRule::kAveraged;
  Cluster c(3, config, 2, {.moments = MomentsRule::kAveraged});
  c.runtime.script = [&c](NodeId from, NodeId, Message& m) -> sim::Time {
    if (auto* offer = std::get_if<Offer>(&m); offer && from == 2) {
      offer->blocks[0].moments = std::make_shared<BlockMoments>(
          BlockMoments{c.nodes[0]->Filled(0, 0), c.nodes[0]->Filled(0, -1e6), 3});
    }
    return milliseconds(10);
  };
  c.Run();
  ASSERT_TRUE(c.nodes[0]->moments.contains(0));
  EXPECT_GE(c.nodes[0]->moments[0]->second->as<double>()[0], 0);
}

TEST(OfferCheck, FiniteValuesWhoseSumWouldOverflowAreRefused) {
  for (const bool tokens : {false, true}) {
    CoordinatorConfig config;
    config.reduction.shared.kind = ReductionKind::kTokenMean;
    Cluster c(4, config);
    c.runtime.script = [&c, tokens](NodeId from, NodeId, Message& m) -> sim::Time {
      if (auto* offer = std::get_if<Offer>(&m); offer && from == 2) {
        Refill(offer->blocks[0], *c.table, tokens ? 1e291 : 1e308);
        if (tokens) offer->tokens = std::numeric_limits<std::int64_t>::max();
      }
      return milliseconds(10);
    };
    EXPECT_NO_THROW(c.Run());
    EXPECT_TRUE(c.coordinator->finished());
  }
}

TEST(OfferCheck, ALateResultCannotSayHowManyStepsItHad) {
  CoordinatorConfig config;
  config.schedule = {.total_steps = 12, .every = 3};
  config.reduction.shared.kind = ReductionKind::kTokenMean;
  config.quorum = 4;
  config.late = LateRule::kNextRound;
  config.trust.norm_bound = 6;
  Cluster c(5, config);
  c.runtime.script = [](NodeId from, NodeId, Message& m) -> sim::Time {
    auto* offer = std::get_if<Offer>(&m);
    if (!offer || from != 4) return milliseconds(10);
    if (offer->span.round != 1) return milliseconds(10);
    offer->tokens = 1'000'000'000;
    offer->span.steps = 100'000'000;
    return seconds(1);
  };
  c.Run();
  EXPECT_THAT(c.recorder.Events("reject"), ElementsAre(HasSubstr("unexpected: ")));
}

TEST(OfferCheck, AResultBringsAsManyStepsAsWereOrdered) {
  Cluster c(2);
  c.runtime.script = [](NodeId from, NodeId, Message& m) -> sim::Time {
    if (auto* offer = std::get_if<Offer>(&m); offer && from == 1) {
      analysis::StepRecord bogus;
      bogus.step = 1ll << 60;
      bogus.ce = std::nan("");
      offer->steps.assign(100'000, bogus);
    }
    return milliseconds(10);
  };
  c.Run();
  EXPECT_LE(c.recorder.steps.size(), 12u);
  for (const auto& round : c.recorder.rounds) EXPECT_TRUE(std::isfinite(round.mean_ce));
}

// What a node says of its steps must be possible.
TEST(OfferCheck, CountsThatCannotBeAreRefused) {
  for (const int fault : {0, 1, 2, 3, 4, 5, 6, 7, 8}) {
    CoordinatorConfig config;
    config.tokens_per_step = 10;
    Cluster c(3, config);
    for (auto& node : c.nodes) node->routed = {{20, 10, 0, 0, 0, 0}};
    c.runtime.script = [&](NodeId from, NodeId, Message& m) -> sim::Time {
      auto* offer = std::get_if<Offer>(&m);
      if (!offer || from != 2 || offer->span.round != 1) return milliseconds(10);
      if (fault == 1) offer->tokens = 31;
      if (fault == 2) std::swap(offer->steps[0], offer->steps[1]);
      if (fault == 3) offer->steps[0].tokens = -1;
      if (fault == 4) offer->steps[0].grad_norm = std::numeric_limits<double>::infinity();
      if (fault == 5) offer->routing.routed[0][3] = std::numeric_limits<std::int64_t>::max();
      if (fault == 6) offer->routing.tokens = 31;
      if (fault == 7) offer->routing.entropy_sum[0] = std::nan("");
      if (fault == 8) offer->compute_s = std::nan("");
      return milliseconds(10);
    };
    c.Run();
    EXPECT_TRUE(c.coordinator->finished());
    EXPECT_THAT(c.recorder.Events("reject"), SizeIs(fault == 0 ? 0 : 1)) << fault;
  }
}

// Moments come of all blocks, of experts or of none, as they were asked for.
TEST(OfferCheck, MomentsAreThoseThatWereAskedFor) {
  for (const int fault : {0, 1, 2, 3}) {
    CoordinatorConfig config;
    config.moments = MomentsRule::kAveraged;
    Cluster c(3, config, 2, {.moments = MomentsRule::kAveraged});
    c.runtime.script = [&](NodeId from, NodeId, Message& m) -> sim::Time {
      auto* offer = std::get_if<Offer>(&m);
      if (!offer || from != 2 || offer->span.round != 1) return milliseconds(10);
      SharedMoments& moments = offer->blocks[0].moments;
      if (fault == 1) moments = nullptr;
      if (fault >= 2) {
        auto other = std::make_shared<BlockMoments>(*moments);
        other->updates = fault == 2 ? -1 : 4;  // of three steps
        moments = std::move(other);
      }
      return milliseconds(10);
    };
    c.Run();
    EXPECT_TRUE(c.coordinator->finished());
    EXPECT_THAT(c.recorder.Events("reject"), SizeIs(fault == 0 ? 0 : 1)) << fault;
  }
}

}  // namespace
}  // namespace spes::trainer
