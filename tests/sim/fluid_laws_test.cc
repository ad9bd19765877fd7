// The fluid level held against what is known in closed form.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>

#include "sim/fluid/fluid_network.h"
#include "sim/fluid/tcp_model.h"
#include "sim/tcp_laws.h"
#include "tests/sim/levels.h"

namespace spes::sim {
namespace {

using namespace std::chrono_literals;

constexpr double kSegment = 1448, kPacket = 1502, kFirst = 10 * kSegment;

// Two hosts, `bps` towards the second, which is the only slow link.
Topology Line(double bps, Time rtt) {
  Topology topology = Star(2, {.down_bps = 100e9, .up_bps = 100e9, .rtt = rtt / 2});
  topology.hosts[1].link.down_bps = bps;
  return topology;
}

FlowResult Alone(const Topology& topology, const Flow& flow, const TcpConfig& tcp = {}) {
  const auto network = MakeFluidNetwork(topology, tcp);
  network->Prepare(flow.from, flow.to, flow.streams);
  return Transfer(*network, flow);
}

double Seconds(const FlowResult& result) { return ToSeconds(result.end - result.start); }

// A round trip, its segment's time on the slow link and that of the acknowledgement included.
double FullRtt(double bps, double rtt) { return rtt + kPacket * 8 / bps + 54 * 8 / 100e9; }

// In the n-th round trip 2^n initial windows leave, one behind the other at the rate of the link,
// which then waits for the next round trip; until a round fills the link, or all has been sent.
double LosslessSeconds(double bytes, double bps, double rtt, double first = kFirst) {
  const double bytes_per_s = bps / 8 * kSegment / kPacket;
  const double round = FullRtt(bps, rtt);
  double waits = 0, sent = 0;
  for (double window = first; window < bytes_per_s * round && sent + window < bytes; window *= 2) {
    waits += round - window / bytes_per_s;
    sent += window;
  }
  return rtt / 2 + waits + bytes / bytes_per_s;
}

class SingleFlow : public testing::TestWithParam<std::tuple<double, Time, std::int64_t>> {};

TEST_P(SingleFlow, TakesSlowStartAndThenTheWholeLink) {
  const auto [bps, rtt, bytes] = GetParam();
  const double measured = Seconds(Alone(Line(bps, rtt), {.from = 0, .to = 1, .bytes = bytes}));
  const auto size = static_cast<double>(bytes);
  EXPECT_NEAR(measured / LosslessSeconds(size, bps, ToSeconds(rtt)), 1, 1e-3);
  // The law for those that get out of slow start.
  const double rounds = std::log2(bps * ToSeconds(rtt) / 8 / kFirst);
  if (rounds < 1 || size < 2 * bps * ToSeconds(rtt) / 8) return;
  const double law = size * 8 / (bps * kSegment / kPacket) + ToSeconds(rtt) * (rounds - 0.5);
  EXPECT_NEAR(measured, law, 0.35 * ToSeconds(rtt));
}

INSTANTIATE_TEST_SUITE_P(Grid, SingleFlow,
                         testing::Combine(testing::Values(10e6, 100e6, 1000e6),
                                          testing::Values(10ms, 50ms, 150ms),
                                          testing::Values(1'000'000, 20'000'000, 200'000'000)));

TEST(FluidLaws, HalfTheRateTakesTwiceAsLong) {
  const auto seconds = [](double bps) {
    return Seconds(Alone(Line(bps, 20ms), {.from = 0, .to = 1, .bytes = 500'000'000}));
  };
  EXPECT_NEAR(seconds(50e6) / seconds(100e6), 2, 0.01);
}

TEST(FluidLaws, StreamsStartWithAsManyWindows) {
  const std::int64_t bytes = 20'000'000;
  for (const int streams : {1, 4, 16}) {
    const FlowResult result =
        Alone(Line(500e6, 100ms), {.from = 0, .to = 1, .bytes = bytes, .streams = streams});
    const double law = LosslessSeconds(static_cast<double>(bytes), 500e6, 0.1, streams * kFirst);
    EXPECT_NEAR(Seconds(result) / law, 1, 1e-3) << streams;
  }
}

TEST(FluidLaws, FirstContactTakesARoundTripMore) {
  const auto network = MakeFluidNetwork(Line(100e6, 80ms), {.after_idle = "fresh"});
  const Flow flow{.from = 0, .to = 1, .bytes = 3'000'000};
  const double first = Seconds(Transfer(*network, flow));
  EXPECT_NEAR(first - Seconds(Transfer(*network, flow)), 0.080, 1e-4);
}

// A flow so long that its beginning does not count.
double SteadyWindow(const std::string& congestion, double loss, double burst, Time rtt,
                    int streams = 1) {
  Topology topology = Line(100e9, rtt);
  topology.hosts[1].link.loss = loss;
  topology.hosts[1].link.loss_burst = burst;
  const Flow flow{.from = 0, .to = 1, .bytes = 200'000'000'000, .streams = streams};
  const FlowResult result = Alone(topology, flow, {.congestion = congestion});
  return static_cast<double>(flow.bytes) / kSegment / Seconds(result) * ToSeconds(rtt);
}

TEST(FluidLaws, RenoUnderRandomLossFollowsMathis) {
  for (const double loss : {1e-4, 1e-3, 1e-2}) {
    for (const Time rtt : {20ms, 100ms}) {
      EXPECT_NEAR(SteadyWindow("reno", loss, 1, rtt) / RenoWindow(loss), 1.12, 0.08) << loss;
    }
  }
}

TEST(FluidLaws, CubicUnderRandomLossFollowsTheLargerOfItsTwoWindows) {
  for (const double loss : {1e-4, 1e-3, 1e-2}) {
    for (const Time rtt : {20ms, 100ms}) {
      const double law = std::max(RenoWindow(loss), CubicWindow(loss, ToSeconds(rtt)));
      EXPECT_NEAR(SteadyWindow("cubic", loss, 1, rtt) / law, 1.1, 0.15) << loss;
    }
  }
}

TEST(FluidLaws, EveryStreamHasItsOwnLosses) {
  EXPECT_NEAR(SteadyWindow("cubic", 1e-3, 1, 50ms, 8) / SteadyWindow("cubic", 1e-3, 1, 50ms), 8,
              0.1);
}

TEST(FluidLaws, ABurstIsOneLoss) {
  EXPECT_NEAR(SteadyWindow("reno", 1e-3, 10, 50ms) / SteadyWindow("reno", 1e-4, 1, 50ms), 1, 0.01);
}

TEST(FluidLaws, MuchLossMeansTimeouts) {
  const double p = 0.2, rtt = 0.05;
  EXPECT_LT(LossWindow("reno", p, rtt), 0.3 * RenoWindow(p));
  EXPECT_GT(LossWindow("reno", 0.02, rtt), RenoWindow(0.02));
  double last = 1e9;
  for (double loss = 1e-6; loss < 0.9; loss *= 1.5) {
    const double window = LossWindow("cubic", loss, rtt);
    EXPECT_LT(window, last);
    EXPECT_GT(window, 0);
    last = window;
  }
}

// A short flow is mostly over before anything is lost.
TEST(FluidLaws, AFewSegmentsMeetNoLoss) {
  Topology topology = Line(100e6, 50ms);
  const Flow flow{.from = 0, .to = 1, .bytes = 100'000};
  const double clean = Seconds(Alone(topology, flow));
  topology.hosts[1].link.loss = 1e-3;
  EXPECT_NEAR(Seconds(Alone(topology, flow)) / clean, 1, 0.05);
}

// Eight flows into one link.
TEST(FluidLaws, AFullLinkIsUsedWhole) {
  Topology topology = Star(9, {.down_bps = 100e6, .up_bps = 100e6, .rtt = 20ms});
  for (int i = 1; i <= 8; ++i) topology.hosts[i].link.rtt = i * 5ms;
  const auto network = MakeFluidNetwork(topology, {});
  PrepareAll(*network, topology);
  for (int i = 1; i <= 8; ++i) network->Start({.from = i, .to = 0, .bytes = 25'000'000}, {});
  while (network->NextEvent()) network->AdvanceTo(kNever);
  const double ideal = 8 * 25e6 * 8 / (100e6 * kSegment / kPacket);
  EXPECT_GT(ToSeconds(network->Now()), ideal);
  EXPECT_LT(ToSeconds(network->Now()), 1.1 * ideal) << "windows grow into what others leave";
}

}  // namespace
}  // namespace spes::sim
