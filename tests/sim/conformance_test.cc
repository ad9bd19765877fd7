// What every level of fidelity keeps to: the same tests over each of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <stdexcept>
#include <vector>

#include "sim/network.h"
#include "tests/sim/levels.h"

namespace spes::sim {
namespace {

using namespace std::chrono_literals;

class Conformance : public testing::TestWithParam<Level> {
 protected:
  std::unique_ptr<Network> Make(const Topology& topology, const TcpConfig& tcp = {}) {
    std::unique_ptr<Network> network = GetParam().make(topology, tcp);
    PrepareAll(*network, topology);
    return network;
  }

  // Packets share less evenly and lose some time to start-up and full queues.
  void ExpectSeconds(double seconds, double ideal, double slack) const {
    if (GetParam().packets) {
      EXPECT_GE(seconds, ideal);
      EXPECT_LE(seconds, ideal + slack);
    } else {
      EXPECT_NEAR(seconds, ideal, 1e-6);
    }
  }
};

const AccessLink kLink{.down_bps = 20e6, .up_bps = 20e6, .rtt = 10ms};  // 20 ms between hosts

// Advances until nothing is active.
void Drain(Network& network) {
  while (network.NextEvent()) network.AdvanceTo(kNever);
}

TEST_P(Conformance, EverySizeArrivesWhole) {
  const auto network = Make(Star(2, kLink));
  for (const std::int64_t bytes : {0, 1, 1447, 1448, 1449, 14480, 14481, 1'000'000}) {
    const FlowResult result = Transfer(*network, {.from = 0, .to = 1, .bytes = bytes});
    EXPECT_EQ(result.outcome, FlowOutcome::kDone) << bytes;
    EXPECT_EQ(result.flow.bytes, bytes);
    EXPECT_EQ(result.delivered_bytes, bytes);
    EXPECT_EQ(result.retransmitted_bytes, 0) << bytes;
    EXPECT_EQ(result.end, network->Now());
    EXPECT_GE(result.end - result.start, 10ms) << bytes;
    // What fits the initial window waits for no acknowledgement.
    EXPECT_LE(result.end - result.start, bytes <= 14480 ? 18ms : 700ms) << bytes;
  }
}

TEST_P(Conformance, DoneIsCalledOnceForEach) {
  const auto network = Make(Star(3, kLink));
  std::map<FlowId, int> calls;
  std::vector<FlowId> ids;
  for (int i = 0; i < 6; ++i) {
    ids.push_back(network->Start({.from = i % 3, .to = (i + 1) % 3, .bytes = i * 10'000},
                                 [&](const FlowResult& result) { ++calls[result.id]; }));
  }
  EXPECT_TRUE(calls.empty()) << "called before AdvanceTo";
  Drain(*network);
  network->AdvanceTo(network->Now() + 1s);
  EXPECT_EQ(calls.size(), ids.size());
  for (const FlowId id : ids) EXPECT_EQ(calls[id], 1);
}

TEST_P(Conformance, DoneMayBeEmpty) {
  const auto network = Make(Star(2, kLink));
  network->Start({.from = 0, .to = 1, .bytes = 1000}, {});
  Drain(*network);
}

TEST_P(Conformance, ACancelledFlowEndsAtOnceAndOnlyOnce) {
  const auto network = Make(Star(2, kLink));
  int calls = 0;
  FlowResult result;
  const FlowId id =
      network->Start({.from = 0, .to = 1, .bytes = 10'000'000}, [&](const FlowResult& r) {
        ++calls;
        result = r;
      });
  while (network->Now() < 1s) network->AdvanceTo(1s);
  network->Cancel(id);
  EXPECT_EQ(calls, 0) << "called within Cancel";
  ASSERT_TRUE(network->NextEvent());
  EXPECT_EQ(*network->NextEvent(), 1s);
  network->Cancel(id);
  network->AdvanceTo(1s);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(result.outcome, FlowOutcome::kCancelled);
  EXPECT_EQ(result.end, 1s);
  EXPECT_GT(result.delivered_bytes, 1'000'000);
  EXPECT_LT(result.delivered_bytes, 2'500'000);
  EXPECT_FALSE(network->NextEvent());
  network->Cancel(id);
  network->Cancel(9999);
  network->AdvanceTo(2s);
  EXPECT_EQ(calls, 1);
}

TEST_P(Conformance, CancelBeforeAnythingWasSent) {
  const auto network = Make(Star(2, kLink));
  FlowResult result;
  network->Cancel(network->Start({.from = 0, .to = 1, .bytes = 5000},
                                 [&](const FlowResult& r) { result = r; }));
  Drain(*network);
  EXPECT_EQ(result.outcome, FlowOutcome::kCancelled);
  EXPECT_EQ(result.delivered_bytes, 0);
  EXPECT_EQ(result.end, 0s);
}

// What one gives up the other gets: 2.5 MB alone take 1 s, beside another 2 s.
TEST_P(Conformance, ACancelledFlowFreesItsShare) {
  const auto network = Make(Star(3, kLink));
  FlowResult first;
  network->Start({.from = 0, .to = 1, .bytes = 2'500'000}, [&](const FlowResult& r) { first = r; });
  const FlowId second = network->Start({.from = 0, .to = 2, .bytes = 25'000'000}, {});
  while (network->Now() < 500ms) network->AdvanceTo(500ms);
  network->Cancel(second);
  Drain(*network);
  ExpectSeconds(ToSeconds(first.end), 1.255, 0.5);
}

TEST_P(Conformance, FlowsStartAndCancelFromWithinDone) {
  const auto network = Make(Star(3, kLink));
  std::vector<FlowResult> results;
  const FlowId slow = network->Start({.from = 2, .to = 1, .bytes = 50'000'000},
                                     [&](const FlowResult& r) { results.push_back(r); });
  network->Start({.from = 0, .to = 1, .bytes = 1000}, [&](const FlowResult& r) {
    results.push_back(r);
    network->Cancel(r.id);  // it has ended: no effect
    network->Cancel(slow);
    network->Start({.from = 1, .to = 0, .bytes = 1000},
                   [&](const FlowResult& reply) { results.push_back(reply); });
  });
  Drain(*network);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].outcome, FlowOutcome::kDone);
  EXPECT_EQ(results[1].outcome, FlowOutcome::kCancelled);
  EXPECT_EQ(results[1].end, results[0].end);
  EXPECT_EQ(results[2].outcome, FlowOutcome::kDone);
  EXPECT_EQ(results[2].start, results[0].end);
}

TEST_P(Conformance, AnExceptionFromDoneReachesTheCallerAndLosesNothing) {
  const auto network = Make(Star(3, kLink));
  int later = 0;
  network->Start({.from = 0, .to = 1, .bytes = 1000},
                 [](const FlowResult&) { throw std::runtime_error("from done"); });
  network->Start({.from = 0, .to = 1, .bytes = 1000}, [&](const FlowResult&) { ++later; });
  network->Start({.from = 0, .to = 2, .bytes = 9000}, [&](const FlowResult&) { ++later; });
  EXPECT_THROW(Drain(*network), std::runtime_error);
  Drain(*network);
  EXPECT_EQ(later, 2);
}

TEST_P(Conformance, TwoFlowsShareALink) {
  const auto network = Make(Star(3, kLink));
  std::vector<double> ends;
  for (const int to : {1, 2}) {
    network->Start({.from = 0, .to = to, .bytes = 2'500'000},
                   [&](const FlowResult& r) { ends.push_back(ToSeconds(r.end)); });
  }
  Drain(*network);
  ExpectSeconds(ends[1], 2.01, 0.6);
  EXPECT_GT(ends[0], 1.3);
}

// Up links of 5 and 20 Mbps into down links of 20 and 10: the smaller of each pair counts.
TEST_P(Conformance, TheSlowestLinkSetsThePace) {
  Topology topology = Star(4, kLink);
  topology.hosts[0].link.up_bps = 5e6;
  topology.hosts[3].link.down_bps = 10e6;
  const auto network = Make(topology);
  std::map<int, double> ends;
  const auto note = [&](const FlowResult& r) { ends[r.flow.to] = ToSeconds(r.end); };
  network->Start({.from = 0, .to = 1, .bytes = 1'250'000}, note);
  network->Start({.from = 2, .to = 3, .bytes = 1'250'000}, note);
  Drain(*network);
  ExpectSeconds(ends[1], 2.01, 0.15);
  ExpectSeconds(ends[3], 1.01, 0.15);
}

// Each direction has its own capacity. (Acknowledgements take a little of it, and wait in the other
// direction's queue.) One after the other they would take 2 s.
TEST_P(Conformance, DirectionsDoNotShareCapacity) {
  Topology topology = Star(2, kLink);
  topology.hosts[0].link.up_bps = 10e6;
  for (Host& host : topology.hosts) host.link.queue_bdp = 4;
  const auto network = Make(topology);
  std::map<int, double> ends;
  const auto note = [&](const FlowResult& r) { ends[r.flow.from] = ToSeconds(r.end); };
  network->Start({.from = 0, .to = 1, .bytes = 1'250'000}, note);
  network->Start({.from = 1, .to = 0, .bytes = 2'500'000}, note);
  Drain(*network);
  // Acknowledgements wait behind the other direction's data, and CUBIC takes that for a full path
  // and leaves slow start early, as Linux does.
  ExpectSeconds(ends[0], 1.01, 0.5);
  ExpectSeconds(ends[1], 1.01, 0.8);
}

TEST_P(Conformance, SitePathsAreSharedAndHaveTheirOwnDelay) {
  Topology topology = Star(4, {.down_bps = 1e9, .up_bps = 1e9, .rtt = 1ms});
  topology.sites = {"east", "west"};
  const SitePath local{.rtt = 1ms, .bps = 1e9}, wide{.rtt = 48ms, .bps = 20e6};
  topology.paths = {{local, wide}, {wide, local}};
  topology.hosts[2].site = topology.hosts[3].site = 1;
  const auto network = Make(topology);
  std::vector<double> ends;
  const auto note = [&](const FlowResult& r) { ends.push_back(ToSeconds(r.end - r.start)); };
  network->Start({.from = 0, .to = 2, .bytes = 0}, note);
  Drain(*network);
  EXPECT_NEAR(ends.back(), 0.025, 0.001);
  network->Start({.from = 0, .to = 2, .bytes = 1'250'000}, note);
  network->Start({.from = 1, .to = 3, .bytes = 1'250'000}, note);
  network->Start({.from = 2, .to = 3, .bytes = 1'250'000}, note);
  Drain(*network);
  EXPECT_NEAR(ends[3], 1.1, 0.45) << "two flows over one 20 Mbps path";
  EXPECT_LT(ends[1], 0.1) << "inside a site";
}

TEST_P(Conformance, StreamsCarryThePayloadTogether) {
  const auto network = Make(Star(2, kLink));
  for (const std::int64_t bytes : {0, 1, 3, 1'000'003}) {
    const FlowResult result =
        Transfer(*network, {.from = 0, .to = 1, .bytes = bytes, .streams = 4});
    EXPECT_EQ(result.outcome, FlowOutcome::kDone);
    EXPECT_EQ(result.delivered_bytes, bytes);
    EXPECT_LT(result.end - result.start, 800ms);
  }
}

TEST_P(Conformance, AHalfOfTheRoundTripIsOneWay) {
  Topology topology = Star(2, {.down_bps = 1e9, .up_bps = 1e9, .rtt = 100ms});
  topology.hosts[1].link.rtt = 20ms;
  topology.paths[0][0]->rtt = 60ms;
  const auto network = Make(topology);
  for (const bool there : {true, false}) {
    const FlowResult result =
        Transfer(*network, {.from = there ? 0 : 1, .to = there ? 1 : 0, .bytes = 1});
    EXPECT_NEAR(ToSeconds(result.end - result.start), 0.09, 0.001);
  }
}

// What starts after a step of the round trip takes as long as if that had always been so long.
TEST_P(Conformance, RoundTripsAreThoseOfNow) {
  Topology changed = Star(2, {.down_bps = 100e6, .up_bps = 100e6, .rtt = 10ms}), always = changed;
  changed.hosts[0].link.conditions.rtt_steps = {{.at = 5s, .extra = 200ms}};
  always.hosts[0].link.rtt += 200ms;
  for (Host& host : always.hosts) host.link.queue_bdp = 20.0 / 220;  // as large as before
  for (const std::int64_t bytes : {0, 1'000'000, 20'000'000}) {
    double seconds[2];
    for (const bool step : {false, true}) {
      const auto network = Make(step ? changed : always);
      while (network->Now() < 10s) network->AdvanceTo(10s);
      const FlowResult result = Transfer(*network, {.from = 0, .to = 1, .bytes = bytes});
      seconds[step] = ToSeconds(result.end - result.start);
    }
    EXPECT_NEAR(seconds[1], seconds[0], 0.01 * seconds[0]) << bytes;
  }
}

TEST_P(Conformance, RateAndRoundTripEachChangeTheTime) {
  const auto seconds = [&](double bps, Time rtt) {
    const auto network = Make(Star(2, {.down_bps = bps, .up_bps = bps, .rtt = rtt}));
    return ToSeconds(Transfer(*network, {.from = 0, .to = 1, .bytes = 1'000'000}).end);
  };
  const double base = seconds(20e6, 10ms);
  EXPECT_GT(seconds(10e6, 10ms), 1.5 * base);
  EXPECT_LT(seconds(40e6, 10ms), 0.9 * base);
  EXPECT_GT(seconds(20e6, 50ms), base + 0.039);
}

TEST_P(Conformance, TheSameRunTwiceIsTheSame) {
  Topology topology = Star(4, kLink);
  topology.hosts[1].link.loss = 0.01;
  const auto run = [&] {
    const auto network = Make(topology, {.seed = 5});
    std::vector<std::pair<FlowId, Time>> ends;
    for (int i = 0; i < 8; ++i) {
      network->Start({.from = i % 4, .to = (i + 1 + i / 4) % 4, .bytes = 100'000 + i},
                     [&](const FlowResult& r) { ends.emplace_back(r.id, r.end); });
    }
    Drain(*network);
    return ends;
  };
  const auto first = run();
  EXPECT_EQ(first.size(), 8u);
  EXPECT_EQ(first, run());
}

TEST_P(Conformance, AdvanceToStopsExactly) {
  const auto network = Make(Star(2, kLink));
  EXPECT_EQ(network->Now(), 0s);
  EXPECT_FALSE(network->NextEvent());
  EXPECT_EQ(network->AdvanceTo(12'345'678ns), 12'345'678ns);
  EXPECT_EQ(network->AdvanceTo(12'345'678ns), 12'345'678ns);
  EXPECT_EQ(network->AdvanceTo(2h), 2h) << "nothing to do until then";
  Time end{0};
  network->Start({.from = 0, .to = 1, .bytes = 500'000}, [&](const FlowResult& r) { end = r.end; });
  Time last = network->Now();
  while (end == 0s) {
    const auto next = network->NextEvent();
    ASSERT_TRUE(next);
    EXPECT_GE(*next, network->Now());
    const Time target = network->Now() + 7ms;
    const Time reached = network->AdvanceTo(target);
    EXPECT_LE(reached, target);
    EXPECT_GE(reached, last);
    EXPECT_EQ(reached, network->Now());
    if (end != 0s) {
      EXPECT_EQ(end, reached);
      EXPECT_LE(*next, end) << "NextEvent was no lower bound";
    }
    last = reached;
  }
}

TEST_P(Conformance, TimeDoesNotGoBack) {
  const auto network = Make(Star(2, kLink));
  network->AdvanceTo(2s);
  EXPECT_THROW(network->AdvanceTo(1s), std::logic_error);
  EXPECT_EQ(network->Now(), 2s);
}

TEST_P(Conformance, IdleTimePassesBetweenFlows) {
  const auto network = Make(Star(2, kLink));
  const FlowResult first = Transfer(*network, {.from = 0, .to = 1, .bytes = 300'000});
  while (network->Now() < 1h) network->AdvanceTo(1h);
  const FlowResult second = Transfer(*network, {.from = 0, .to = 1, .bytes = 300'000});
  EXPECT_EQ(second.start, 1h);
  EXPECT_NEAR(ToSeconds(second.end - second.start), ToSeconds(first.end), 0.001)
      << "an idle connection starts with a fresh window";
}

TEST_P(Conformance, PreparedOrNotTheBytesArrive) {
  const auto network = Make(Star(3, kLink));
  network->Prepare(0, 1, 2);
  const FlowResult prepared =
      Transfer(*network, {.from = 0, .to = 1, .bytes = 100'000, .streams = 2});
  const FlowResult unprepared = Transfer(*network, {.from = 1, .to = 2, .bytes = 100'000});
  EXPECT_EQ(prepared.delivered_bytes, 100'000);
  EXPECT_EQ(unprepared.delivered_bytes, 100'000);
}

TEST_P(Conformance, ImpossibleFlowsAreRefused) {
  const auto network = Make(Star(2, kLink));
  const auto refused = [&](const Flow& flow) {
    EXPECT_THROW(network->Start(flow, {}), std::invalid_argument);
  };
  refused({.from = 0, .to = 2, .bytes = 1});
  refused({.from = -1, .to = 1, .bytes = 1});
  refused({.from = 1, .to = 1, .bytes = 1});
  refused({.from = 0, .to = 1, .bytes = -1});
  refused({.from = 0, .to = 1, .bytes = 1, .streams = 0});
  EXPECT_THROW(network->Prepare(0, 5, 1), std::invalid_argument);
  EXPECT_FALSE(network->NextEvent());
}

TEST_P(Conformance, BadTopologiesAreRefused) {
  EXPECT_THROW(Make({}), std::invalid_argument);
  Topology topology = Star(2, kLink);
  topology.hosts[0].link.up_bps = 0;
  EXPECT_THROW(Make(topology), std::invalid_argument);
  EXPECT_THROW(Make(Star(2, kLink), {.congestion = "no such thing"}), std::invalid_argument);
  EXPECT_NO_THROW(Make(Star(2, kLink))) << "a refusal leaves the way free";
}

TEST_P(Conformance, ALoneHostIsANetwork) {
  const auto network = Make(Star(1, kLink));
  EXPECT_EQ(network->AdvanceTo(5s), 5s);
}

TEST(FlowOutcome, HasNames) {
  EXPECT_EQ(Name(FlowOutcome::kDone), "done");
  EXPECT_EQ(Name(FlowOutcome::kCancelled), "cancelled");
  EXPECT_EQ(Name(FlowOutcome::kStalled), "stalled");
  EXPECT_EQ(Name(FlowOutcome::kFailed), "failed");
}

INSTANTIATE_TEST_SUITE_P(Levels, Conformance, testing::ValuesIn(Levels()), LevelName);

}  // namespace
}  // namespace spes::sim
