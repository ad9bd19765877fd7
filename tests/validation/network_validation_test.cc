// The share of the validation that every test run can pay for; ./dev validate runs all of it.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/validation/experiments.h"

namespace spes::validation {
namespace {

void ExpectWithin(double value, double reference, double percent) {
  EXPECT_NEAR(value, reference, percent / 100 * reference);
}

TEST(Validation, ALosslessFlowFollowsTheLawAtEveryLevel) {
  for (const double mbps : {10, 100, 1000}) {
    for (const double rtt_ms : {10, 50, 150}) {
      const SingleFlow flow{.mbps = mbps, .rtt_ms = rtt_ms, .bytes = 20'000'000};
      const double packet = RunSingleFlow(LevelNamed("packet"), flow).virtual_s;
      SCOPED_TRACE(testing::Message() << mbps << " Mbps, " << rtt_ms << " ms");
      ExpectWithin(packet, LosslessLaw(flow), 2);
      for (const std::string level : {"coarse", "hybrid", "fluid"}) {
        SCOPED_TRACE(level);
        ExpectWithin(RunSingleFlow(LevelNamed(level), flow).virtual_s, packet, 5);
      }
    }
  }
}

TEST(Validation, AShortFlowEndsWithinSlowStart) {
  const SingleFlow flow{.mbps = 1000, .rtt_ms = 150, .bytes = 1'000'000};
  const double packet = RunSingleFlow(LevelNamed("packet"), flow).virtual_s;
  ExpectWithin(packet, LosslessLaw(flow), 2);
  ExpectWithin(RunSingleFlow(LevelNamed("fluid"), flow).virtual_s, packet, 5);
}

TEST(Validation, ThePacketLevelIsCheapEnoughToCheckTheLawsAtOneGigabit) {
  const SingleFlow flow{.mbps = 1000, .rtt_ms = 50, .bytes = 200'000'000};
  ExpectWithin(RunSingleFlow(LevelNamed("packet"), flow).virtual_s, LosslessLaw(flow), 2);
}

TEST(Validation, FluidKeepsTheRateOfPacketsUnderRandomLoss) {
  for (const std::string congestion : {"reno", "cubic"}) {
    for (const double rtt_ms : {20, 100}) {
      SingleFlow flow{.mbps = 1000, .rtt_ms = rtt_ms, .bytes = 60'000'000, .loss = 1e-3};
      flow.tcp.congestion = congestion;
      double packet = 0;
      for (const int seed : {1, 2, 3}) {
        flow.tcp.seed = static_cast<std::uint64_t>(seed);
        packet += RunSingleFlow(LevelNamed("packet"), flow).virtual_s / 3;
      }
      SCOPED_TRACE(testing::Message() << congestion << ", " << rtt_ms << " ms");
      ExpectWithin(RunSingleFlow(LevelNamed("fluid"), flow).virtual_s, packet, 15);
    }
  }
}

TEST(Validation, SixteenUnequalFlowsInto1Gbps) {
  const FanRun packet = RunFan(LevelNamed("packet"), true, 20'000'000, 1),
               hybrid = RunFan(LevelNamed("hybrid"), true, 20'000'000, 1);
  ExpectWithin(hybrid.makespan_s, packet.makespan_s, 10);
  ExpectWithin(hybrid.median_s, packet.median_s, 10);
  ExpectWithin(hybrid.p90_s, packet.p90_s, 10);
}

TEST(Validation, ARoundOfSpes2BPassesAtHybridAndFluid) {
  const validation::Run hybrid = RunSpesRound(LevelNamed("hybrid"), 1),
                        fluid = RunSpesRound(LevelNamed("fluid"), 1);
  ExpectWithin(fluid.virtual_s, hybrid.virtual_s, 5);
}

TEST(Validation, AThousandNodesPassAtFluid) {
  const validation::Run run = RunManyNodes(LevelNamed("fluid"), 1000, 3);
  EXPECT_GT(run.virtual_s, 3 * 70);
}

}  // namespace
}  // namespace spes::validation
