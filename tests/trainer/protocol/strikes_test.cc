// Results that are of no use count against whoever sent them, and a round without any goes by.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "tests/trainer/protocol/cluster.h"

namespace spes::trainer {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(Strikes, WhateverIsRefusedIsOne) {
  for (const int fault : {0, 1, 2}) {
    CoordinatorConfig config;
    config.schedule = {.total_steps = 12, .every = 3};
    config.trust.norm_bound = 6;
    config.trust.strikes = 2;
    Cluster c(5, config);
    c.runtime.script = [&](NodeId from, NodeId, Message& m) -> sim::Time {
      auto* offer = std::get_if<Offer>(&m);
      if (!offer || from != 2) return milliseconds(10);
      if (fault == 0) Refill(offer->blocks[0], *c.table, std::nan(""));
      if (fault == 1) offer->blocks[0].checksum ^= 1;
      if (fault == 2) offer->tokens = -1;
      return milliseconds(10);
    };
    c.Run();
    EXPECT_TRUE(c.coordinator->finished());
    EXPECT_THAT(c.recorder.Events("quarantine"),
                ElementsAre(HasSubstr("refused 2 times in 8 rounds")))
        << fault;
    EXPECT_EQ(c.recorder.rounds[1].rejected, 1);
    EXPECT_EQ(c.recorder.rounds[2].members, 4);
  }
}

// Two honest nodes and one noisy round: with nobody to compare with all are refused.
TEST(Strikes, ARoundOfWhichNothingIsTrustedGoesByAndTheWorldStaysAsItIs) {
  CoordinatorConfig config;
  config.schedule = {.total_steps = 9, .every = 3};
  config.trust.strikes = 2;
  config.trust.margin = 0.5;
  bool noisy = true;
  config.trust.held_out = [&noisy](const World& world) {
    const double x = world.blocks[0].data->as<double>()[0];
    return noisy ? x : -x;
  };
  config.update.merge = {.interval = 1, .alpha = 0.3, .length = 30, .donors = 2};
  Cluster c(2, config);
  c.coordinator = std::make_unique<Coordinator>(
      [&] {
        config.scenario_hash = "same";
        return config;
      }(),
      c.allocation, c.published[0].world, c.runtime.endpoint(kCoordinator), c.recorder,
      [&](const PublishedRound& p) {
        c.published.push_back(p);
        noisy = p.round == 0;
      });
  c.published.clear();
  c.Run();
  ASSERT_TRUE(c.coordinator->finished());
  EXPECT_THAT(c.recorder.Events("empty"), ElementsAre(HasSubstr("round 1: no result is trusted")));
  EXPECT_THAT(c.recorder.Events("distrusted"), SizeIs(2));
  EXPECT_THAT(c.recorder.Events("quarantine"), IsEmpty());
  EXPECT_EQ(c.recorder.rounds[0].arrived, 0);
  EXPECT_EQ(c.recorder.rounds[1].arrived, 2);
  ASSERT_THAT(c.published, SizeIs(3));
  EXPECT_EQ(WorldHash(c.published[0].world), WorldHash(MakeTinyWorld(c.table)));
  EXPECT_EQ(c.published[0].step, 3);
  EXPECT_EQ(c.WorldValue(0), 1 + 2 * 4.5);
}

}  // namespace
}  // namespace spes::trainer
