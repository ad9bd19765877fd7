// Rounds, results and what becomes of broken ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>

#include "tests/trainer/protocol/cluster.h"

namespace spes::trainer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Protocol, SharedBlocksAreAveragedAndExpertsKeepTheirOwnersCopy) {
  Cluster c(2);
  c.Run();
  EXPECT_TRUE(c.coordinator->finished());
  EXPECT_EQ(c.coordinator->round(), 2);
  EXPECT_EQ(c.coordinator->step(), 6);
  // Shared: 1 + 2 rounds · mean(3·1, 3·2); experts of node 0 (blocks 1, 2) and node 1 (3, 4).
  EXPECT_EQ(c.WorldValue(0), 1 + 2 * 4.5);
  EXPECT_EQ(c.WorldValue(1), 2 + 6);
  EXPECT_EQ(c.WorldValue(2), 3 + 6);
  EXPECT_EQ(c.WorldValue(3), 4 + 12);
  EXPECT_EQ(c.WorldValue(4), 5 + 12);
}

TEST(Protocol, SharedBlocksMayBeWeighedByTokens) {
  CoordinatorConfig config;
  config.reduction.shared.kind = ReductionKind::kTokenMean;
  config.schedule.total_steps = 3;
  Cluster c(2, config);
  c.nodes[1]->tokens_per_step = 30;
  c.Run();
  EXPECT_EQ(c.WorldValue(0), 1 + (3 * 30 + 6 * 90) / 120.0);
}

TEST(Protocol, APeerReceivesOnlyWhatItLacks) {
  Cluster c(2);
  c.Run();
  // After round 1: the shared block and the other node's experts; nothing after the last round.
  EXPECT_THAT(c.nodes[0]->applied, ElementsAre(0, 3, 4));
  EXPECT_THAT(c.nodes[1]->applied, ElementsAre(0, 1, 2));
}

TEST(Protocol, AfterAMergeAPeerReceivesItsOwnExpertsToo) {
  CoordinatorConfig config;
  config.update.merge = {.interval = 3, .alpha = 0.5, .length = 100};
  Cluster c(2, config);
  c.Run();
  EXPECT_THAT(c.nodes[0]->applied, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(c.recorder.Events("merge"), ElementsAre("alpha 0.485", "alpha 0.47"));
}

TEST(Protocol, StepsAreTheCoordinatorsCountAndTheLastRoundMayBeShorter) {
  CoordinatorConfig config;
  config.schedule.total_steps = 5;
  Cluster c(2, config);
  c.Run();
  EXPECT_THAT(c.nodes[1]->trained_steps, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(c.coordinator->step(), 5);
  EXPECT_EQ(c.coordinator->total_rounds(), 2);
}

TEST(Protocol, TheOrderOfArrivalDoesNotChangeTheWorld) {
  // The sums of these depend on the order of the terms in their last bits.
  const auto unround = [](Cluster& c) {
    for (auto& node : c.nodes)
      node->Change([&](double& x) { x = 1e16 * (node == c.nodes[0]) + 0.1; });
  };
  Cluster straight(4);
  unround(straight);
  straight.Run();
  Cluster reversed(4);
  unround(reversed);
  reversed.runtime.script = [](NodeId from, NodeId, Message& m) -> sim::Time {
    return std::holds_alternative<Offer>(m) ? milliseconds(1000 - 100 * from) : milliseconds(10);
  };
  reversed.Run();
  EXPECT_EQ(WorldHash(straight.coordinator->world()), WorldHash(reversed.coordinator->world()));
}

TEST(Protocol, ARoundsTimesAddUp) {
  Cluster c(2);
  c.runtime.script = [](NodeId from, NodeId to, Message& m) -> sim::Time {
    if (std::holds_alternative<Offer>(m)) return seconds(from == 0 ? 1 : 5);
    return std::holds_alternative<Update>(m) && to == 0 ? seconds(2) : milliseconds(10);
  };
  c.Run();
  ASSERT_EQ(c.recorder.node_rounds.size(), 4U);
  for (const auto& row : c.recorder.node_rounds) {
    if (row.round != 1) continue;
    EXPECT_DOUBLE_EQ(row.compute_s, 3);
    EXPECT_DOUBLE_EQ(row.up_s, row.node == 0 ? 1 : 5);
    EXPECT_DOUBLE_EQ(row.wait_s, row.node == 0 ? 4 : 0);
    EXPECT_NEAR(row.down_s, row.node == 0 ? 2 : 0.01, 1e-9);
    EXPECT_EQ(row.arrived, 1);
  }
  ASSERT_EQ(c.recorder.rounds.size(), 2U);
  const auto& round = c.recorder.rounds[0];
  EXPECT_DOUBLE_EQ(round.end_s - round.start_s, 0.01 + 3 + 5);
  EXPECT_EQ(round.arrived, 2);
  EXPECT_EQ(c.recorder.steps.size(), 12U);
}

class Repeated : public ::testing::TestWithParam<int> {};

TEST_P(Repeated, AndReorderedMessagesChangeNothing) {
  Cluster plain(2);
  plain.Run();
  Cluster c(2);
  int count = 0;
  c.runtime.script = [&](NodeId from, NodeId to, Message& m) -> sim::Time {
    // Copies come after 0 to 7 seconds: while training, uploading, waiting, or all over.
    c.runtime.loop.After(milliseconds((++count * GetParam()) % 7000),
                         [&c, from, to, m] { c.runtime.Deliver(from, to, m); });
    return milliseconds(from == 1 ? 40 : 10);
  };
  c.Run();
  EXPECT_EQ(WorldHash(plain.coordinator->world()), WorldHash(c.coordinator->world()));
  EXPECT_TRUE(c.coordinator->finished());
  EXPECT_EQ(c.recorder.node_rounds.size(), plain.recorder.node_rounds.size());
  EXPECT_THAT(c.nodes[0]->trained_steps, ElementsAre(1, 2, 3, 4, 5, 6));
}

INSTANTIATE_TEST_SUITE_P(Delays, Repeated, ::testing::Values(15, 1009, 2503, 3011, 3331, 4999));

TEST(Protocol, AnOldUpdateDuringTheNextUploadIsNotTakenForTheNext) {
  Cluster c(2);
  std::optional<Message> old;
  c.runtime.script = [&](NodeId from, NodeId to, Message& m) -> sim::Time {
    if (std::holds_alternative<Update>(m) && to == 0 && !old) old = m;
    const auto* offer = std::get_if<Offer>(&m);
    if (!offer || from != 0 || offer->span.round != 2) return milliseconds(10);
    c.runtime.loop.After(milliseconds(500), [&] { c.runtime.Deliver(kCoordinator, 0, *old); });
    return seconds(1);
  };
  c.Run();
  EXPECT_TRUE(c.coordinator->finished());
  EXPECT_THAT(c.nodes[0]->trained_steps, ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(Protocol, TheRunEndsWithTheLastConfirmationNotWithAnOlderOne) {
  Cluster c(2);
  c.runtime.script = [](NodeId, NodeId, Message& m) -> sim::Time {
    const auto* applied = std::get_if<Applied>(&m);
    return applied ? seconds(applied->version == 1 ? 4 : 2) : milliseconds(10);
  };
  c.Start();
  while (!c.coordinator->finished() && c.runtime.loop.Step()) {
  }
  EXPECT_EQ(c.recorder.node_rounds.size(), 4U);
}

TEST(Protocol, AConfirmationThatComesAfterTheNextResultIsStillCounted) {
  Cluster c(2);
  c.runtime.script = [&](NodeId, NodeId, Message& m) -> sim::Time {
    return std::holds_alternative<Applied>(m) ? seconds(5) : milliseconds(10);
  };
  c.Run();
  EXPECT_TRUE(c.coordinator->finished());
  ASSERT_EQ(c.recorder.node_rounds.size(), 4U);
  for (const auto& row : c.recorder.node_rounds) {
    EXPECT_NEAR(row.compute_s + row.up_s + row.wait_s + row.down_s, 3.02, 1e-9);
  }
}

TEST(Protocol, AnUploadThatIsNotFiniteNeverReachesTheWorld) {
  Cluster c(2);
  bool once = true;
  c.runtime.script = [&](NodeId from, NodeId, Message& m) -> sim::Time {
    auto* offer = std::get_if<Offer>(&m);
    if (offer && from == 1 && once) {
      once = false;
      auto bad = std::make_shared<Buffer>(offer->blocks[1].data->Clone());
      bad->as<double>()[2] = std::numeric_limits<double>::quiet_NaN();
      offer->blocks[1].data = bad;
      offer->blocks[1].checksum =
          BlockChecksum((*c.table)[offer->blocks[1].id], DType::kFloat64, *bad);
    }
    return milliseconds(10);
  };
  c.Run();
  EXPECT_TRUE(c.coordinator->finished());
  EXPECT_THAT(c.recorder.Events("reject"),
              ElementsAre("not finite: layers.0.experts.2.w1 is not finite"));
  // Round 1 is node 0's alone; in round 2 node 1 starts from what was published.
  EXPECT_EQ(c.WorldValue(0), 1 + 3 + 4.5);
  EXPECT_EQ(c.WorldValue(1), 2 + 6);
  EXPECT_EQ(c.WorldValue(3), 4 + 6);
  EXPECT_EQ(c.nodes[1]->resets, 1);
  EXPECT_EQ(c.recorder.rounds[0].rejected, 1);
  for (const PublishedBlock& block : c.coordinator->world().blocks) {
    EXPECT_TRUE(AllFinite(DType::kFloat64, *block.data));
  }
}

TEST(Protocol, ADamagedUploadIsSentAgain) {
  Cluster plain(2);
  plain.Run();
  Cluster c(2);
  int damage = 2;
  c.runtime.script = [&](NodeId from, NodeId, Message& m) -> sim::Time {
    auto* offer = std::get_if<Offer>(&m);
    if (offer && from == 0 && damage > 0) {
      --damage;
      auto bad = std::make_shared<Buffer>(offer->blocks[0].data->Clone());
      bad->as<double>()[0] += 1;
      offer->blocks[0].data = bad;
    }
    return milliseconds(10);
  };
  c.Run();
  EXPECT_EQ(WorldHash(plain.coordinator->world()), WorldHash(c.coordinator->world()));
  EXPECT_EQ(c.recorder.Events("reject").size(), 2U);
  EXPECT_THAT(c.recorder.Events("reject"), Contains(HasSubstr("checksum of layers.0.q")));
  for (const auto& row : c.recorder.node_rounds) {
    if (row.round == 1 && row.node == 0) {
      EXPECT_NEAR(row.up_s, 0.05, 1e-9);  // three sendings and two refusals
    }
  }
  EXPECT_EQ(c.recorder.node_rounds[0].up_bytes, 3 * c.recorder.node_rounds[2].up_bytes);
}

TEST(Protocol, ANodeWhoseUploadsAreAlwaysDamagedIsLeftOut) {
  Cluster c(2);
  c.runtime.script = [&](NodeId from, NodeId, Message& m) -> sim::Time {
    if (auto* offer = std::get_if<Offer>(&m); offer && from == 0) ++offer->blocks[0].checksum;
    return milliseconds(10);
  };
  c.Run();
  EXPECT_TRUE(c.coordinator->finished());
  EXPECT_EQ(c.WorldValue(0), 1 + 12);
  EXPECT_EQ(c.WorldValue(1), 2);  // its experts stay as they were
  EXPECT_EQ(c.recorder.experts.front().staleness, 1);
  EXPECT_EQ(c.recorder.experts.back().staleness, 0);
}

TEST(Protocol, ARoundWithoutAnyUsableUploadEndsTheRun) {
  Cluster c(2);
  c.runtime.script = [&](NodeId, NodeId, Message& m) -> sim::Time {
    if (auto* offer = std::get_if<Offer>(&m)) {
      auto bad = std::make_shared<Buffer>(offer->blocks[0].data->Clone());
      bad->as<double>()[0] = std::numeric_limits<double>::infinity();
      offer->blocks[0].data = bad;
      offer->blocks[0].checksum = BlockChecksum((*c.table)[0], DType::kFloat64, *bad);
    }
    return milliseconds(10);
  };
  try {
    c.Run();
    FAIL();
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "round 1: no upload can be used; node 1: layers.0.q is not finite");
  }
}

TEST(Protocol, ForeignBlocksAndSizesAreRefused) {
  for (const int fault : {0, 1, 2, 3, 4, 5}) {
    Cluster c(2);
    c.runtime.script = [&](NodeId from, NodeId, Message& m) -> sim::Time {
      if (auto* offer = std::get_if<Offer>(&m); offer && from == 0 && offer->span.round == 1) {
        if (fault == 0) offer->blocks.back().id = 3;
        if (fault == 1) offer->blocks.back().data = std::make_shared<Buffer>(8);
        if (fault == 2) offer->blocks.pop_back();
        if (fault == 3) offer->blocks.back().id = 1 << 28;
        if (fault == 4) offer->tokens = 0;
        if (fault == 5) offer->span.first_step = 4;
      }
      return milliseconds(10);
    };
    c.Run();
    EXPECT_TRUE(c.coordinator->finished());
    EXPECT_THAT(c.recorder.Events("reject"), ElementsAre(HasSubstr("unexpected: ")));
    EXPECT_EQ(c.WorldValue(0), 1 + 6 + 4.5);
  }
}

TEST(Protocol, OneNodeIsPlainTraining) {
  Cluster c(1);
  c.Run();
  EXPECT_TRUE(c.coordinator->finished());
  EXPECT_THAT(c.nodes[0]->applied, ElementsAre());  // the world is its own copy
  EXPECT_EQ(c.WorldValue(0), 7);
}

TEST(Protocol, EveryRoundIsPublishedOnceInOrder) {
  Cluster c(2);
  c.Run();
  ASSERT_EQ(c.published.size(), 3U);
  EXPECT_EQ(c.published[0].round, 0);
  EXPECT_EQ(c.published[2].step, 6);
  // A published world is never written again.
  EXPECT_EQ(c.published[0].world.blocks[0].data->as<double>()[0], 1);
  EXPECT_EQ(c.published[1].world.blocks[0].data->as<double>()[0], 5.5);
}

}  // namespace
}  // namespace spes::trainer
