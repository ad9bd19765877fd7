#include "trainer/cost/forecast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>

#include "tests/trainer/protocol/fake_node.h"
#include "trainer/cost/forecast_text.h"
#include "trainer/protocol/wire_size.h"

namespace spes::trainer {
namespace {

using sim::ExchangePattern;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

// N nodes and a coordinator at one site, 8 kbps = 1 kB/s each way, 20 ms from host to host.
sim::Topology Star(int nodes) {
  sim::Topology t;
  t.sites = {"here"};
  t.paths = {{sim::SitePath{}}};
  for (int n = 0; n <= nodes; ++n) {
    t.hosts.push_back({n < nodes ? "node " + std::to_string(n) : "coordinator",
                       0,
                       {.down_bps = 8e3, .up_bps = 8e3, .rtt = milliseconds(20)}});
  }
  return t;
}

ExchangeSchedule Schedule(ExchangePattern pattern, int nodes, int overlap = 0) {
  const auto table = MakeTinyTable(1, nodes);
  ExchangeConfig config;
  config.pattern = pattern;
  config.coordinators = {nodes};
  config.sites.assign(static_cast<std::size_t>(nodes), 0);
  config.schedule = {.total_steps = 1000, .every = 2, .overlap = overlap};
  return {*table, MakeAllocation({.kind = AllocationKind::kContiguous}, *table, nodes), config};
}

constexpr double kShared = 5 * 8 + kBlockHeaderBytes, kExpert = 12 * 8 + kBlockHeaderBytes;

// Two steps a round; a step of node n takes n + 1 seconds.
ForecastConfig Config(std::int32_t rounds) {
  ForecastConfig config;
  config.rounds = rounds;
  config.step_time = [](NodeId node, std::int64_t) { return sim::Time(seconds(node + 1)); };
  return config;
}

// A step is trained while each exchange but the last is on its way, and no step twice.
TEST(Forecast, StepsAheadHideTheExchange) {
  const auto run = [](int overlap) {
    const auto network = sim::MakeIdealNetwork(Star(2), {});
    return MakeForecast(Schedule(ExchangePattern::kCoordinator, 2, overlap), Config(3), *network);
  };
  const Forecast plain = run(0), ahead = run(1);
  for (const std::size_t n : {0, 1}) {
    EXPECT_NEAR(plain.nodes[n].compute_s, 6.0 * static_cast<double>(n + 1), 1e-9);
    EXPECT_NEAR(ahead.nodes[n].compute_s, plain.nodes[n].compute_s, 1e-9);
    EXPECT_NEAR(ahead.nodes[n].total_s(), ahead.total_s, 1) << "both end with the last exchange";
  }
  EXPECT_LT(ahead.total_s, plain.total_s - 0.2);
  EXPECT_GE(ahead.total_s, 12);
}

TEST(Forecast, OfARing) {
  const auto network = sim::MakeIdealNetwork(Star(4), {});
  const Forecast forecast = MakeForecast(Schedule(ExchangePattern::kRing, 4), Config(3), *network);
  const double exchange = 6 * 0.020 + 6 * kShared / 4 / 1000 + 3 * kExpert / 1000;
  EXPECT_EQ(forecast.rounds, 3);
  EXPECT_NEAR(forecast.total_s, 3 * (8 + exchange), 1e-6);
  EXPECT_EQ(forecast.flows, 3 * 4 * 6);
  for (int n = 0; n < 4; ++n) {
    const NodeForecast& node = forecast.nodes[static_cast<std::size_t>(n)];
    EXPECT_NEAR(node.compute_s, 3 * 2 * (n + 1), 1e-9);
    EXPECT_NEAR(node.total_s(), forecast.total_s, 1e-6);
    EXPECT_EQ(node.up_bytes, 3 * (6 * 16 + 3 * 120));
    EXPECT_EQ(node.down_bytes, node.up_bytes);
  }
  // The last to be ready waits least: not at all, but for the way from it to its successor.
  EXPECT_EQ(forecast.SlowestNode(), 3);
  EXPECT_NEAR(forecast.nodes[3].utilisation(), 8 / (8 + exchange), 1e-6);
  EXPECT_EQ(forecast.busiest.wire_bytes, 3 * (6 * 16 + 3 * 120));
  EXPECT_NEAR(forecast.busiest.utilisation, (6 * 16 + 3 * 120) / 1000.0 / (8 + exchange), 1e-6);
}

// One node: computing, up to the coordinator, and nothing comes back of what it alone has trained.
TEST(Forecast, OfOneNode) {
  const auto network = sim::MakeIdealNetwork(Star(1), {});
  const Forecast forecast =
      MakeForecast(Schedule(ExchangePattern::kCoordinator, 1), Config(5), *network);
  const double up = (kShared + kExpert) / 1000 + 0.020;
  EXPECT_NEAR(forecast.total_s, 5 * (2 + up), 1e-6);
  EXPECT_NEAR(forecast.nodes[0].exchange_s, 5 * up, 1e-6);
  EXPECT_NEAR(forecast.nodes[0].wait_s, 0, 1e-9);
  EXPECT_EQ(forecast.nodes[0].down_bytes, 0);
}

// Two equal nodes through the coordinator: both upload at once into its one link, then it answers.
TEST(Forecast, OfTwoNodesAndACoordinator) {
  const auto network = sim::MakeIdealNetwork(Star(2), {});
  ForecastConfig config = Config(4);
  config.step_time = [](NodeId, std::int64_t) { return sim::Time(seconds(1)); };
  const Forecast forecast =
      MakeForecast(Schedule(ExchangePattern::kCoordinator, 2), config, *network);
  const double exchange = 2 * ((kShared + kExpert) / 1000 * 2 + 0.020);
  EXPECT_NEAR(forecast.total_s, 4 * (2 + exchange), 1e-6);
  EXPECT_NEAR(forecast.nodes[1].exchange_s, 4 * exchange, 1e-6);
  EXPECT_THAT(forecast.busiest.name, HasSubstr("coordinator"));
}

// Through the coordinator a node goes on as soon as it has its values: node 1 receives slowly,
// node 0 trains meanwhile; the ring's rounds end for all at once.
TEST(Forecast, WhoHasItsValuesGoesOn) {
  sim::Topology topology = Star(2);
  topology.hosts[0].link.down_bps = topology.hosts[2].link.up_bps = 8e6;
  topology.hosts[2].link.down_bps = 8e6;
  ForecastConfig config = Config(2);
  config.step_time = [](NodeId, std::int64_t) { return sim::Time(milliseconds(10)); };
  const auto network = sim::MakeIdealNetwork(topology, {});
  const Forecast forecast =
      MakeForecast(Schedule(ExchangePattern::kCoordinator, 2), config, *network);
  EXPECT_LT(forecast.nodes[0].total_s(), forecast.nodes[1].total_s() - 0.1);
  EXPECT_NEAR(forecast.nodes[1].total_s(), forecast.total_s, 1e-6);
  EXPECT_EQ(forecast.SlowestNode(), 1);
}

// What arrives while a node still computes is no time of exchange.
TEST(Forecast, WhatArrivesBeforeIsNotCounted) {
  for (const double bps : {8e3, 80.0}) {  // it ends before node 1 has computed, and after
    sim::Topology topology = Star(2);
    for (sim::Host& host : topology.hosts) host.link.down_bps = host.link.up_bps = bps;
    const auto network = sim::MakeIdealNetwork(topology, {});
    const Forecast forecast =
        MakeForecast(Schedule(ExchangePattern::kDirect, 2), Config(2), *network);
    const NodeForecast& late = forecast.nodes[1];
    EXPECT_NEAR(late.compute_s, 2 * 4, 1e-9);
    EXPECT_NEAR(late.total_s(), forecast.total_s, 1e-6);
    EXPECT_GE(late.wait_s, -1e-9) << bps;
    EXPECT_GT(late.exchange_s, 0) << bps;
  }
}

TEST(Forecast, AFailedTransferIsNamed) {
  // Links that pass nothing, so that transfers stall.
  sim::Topology topology = Star(2);
  for (sim::Host& host : topology.hosts) {
    host.link.conditions.outages.push_back({.at = {}, .duration = seconds(100'000), .every = {}});
  }
  sim::TcpConfig tcp;
  tcp.stall_timeout = seconds(60);
  const auto network = sim::MakeIdealNetwork(topology, tcp);
  try {
    MakeForecast(Schedule(ExchangePattern::kRing, 2), Config(1), *network);
    FAIL() << "nothing passed, and yet it ended";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("round 1: the exchange by ring cannot go on: the transfer "
                                        "from node 0 to node 1 stalled after 0 of"));
  }
}

// A thousand nodes, a hundred rounds: what is counted stays exact, and ends.
TEST(Forecast, OfManyNodesAndRounds) {
  constexpr int kNodes = 1000, kRounds = 100;
  sim::Topology topology = Star(kNodes);
  topology.hosts.back().link = {.down_bps = 8e9, .up_bps = 8e9, .rtt = milliseconds(20)};
  ForecastConfig config = Config(kRounds);
  config.step_time = [](NodeId, std::int64_t) { return sim::Time(seconds(1)); };
  const auto network = sim::MakeIdealNetwork(topology, {});
  const Forecast forecast =
      MakeForecast(Schedule(ExchangePattern::kCoordinator, kNodes), config, *network);
  EXPECT_EQ(forecast.rounds, kRounds);
  EXPECT_EQ(forecast.flows, 2LL * kNodes * kRounds);
  EXPECT_NEAR(forecast.total_s,
              kRounds * (2 + (kShared + kExpert) / 1000 +
                         (kShared + (kNodes - 1) * kExpert) / 1000 + 2 * 0.020),
              1e-3);
}

TEST(ForecastText, NamesWhatHoldsTheRoundsUp) {
  Forecast forecast;
  forecast.rounds = 2;
  forecast.total_s = 40;
  forecast.nodes = {{20, 4, 16, 2'000'000, 6'000'000}, {36, 4, 0, 2'000'000, 6'000'000}};
  forecast.busiest = {"node 1 up", 2'100'000, 0.42};
  forecast.flows = 8;
  ForecastContext context{"here", "ring", "fluid", 2'000'000'000, 1000, 0.5};
  const std::string text = ForecastText(forecast, context);
  EXPECT_THAT(text, HasSubstr("here: 2 nodes, 2000 M parameters, exchange by ring, network fluid"));
  EXPECT_THAT(text, HasSubstr("2 rounds in 40 s of virtual time, 20 s a round"));
  EXPECT_THAT(text, HasSubstr("node 1              18 s         2 s         0 s      90.0 %"));
  EXPECT_THAT(text, HasSubstr("1 MB        3 MB\n"));
  EXPECT_THAT(text, HasSubstr("mean                14 s         2 s         4 s      70.0 %"));
  EXPECT_THAT(text, HasSubstr("slowest node   node 1"));
  EXPECT_THAT(text, HasSubstr("busiest link   node 1 up: 42.0 %"));
  EXPECT_THAT(text, HasSubstr("tokens         50 per second"));
  EXPECT_EQ(ForecastCsv(forecast),
            "node,compute_s,exchange_s,wait_s,total_s,utilisation,up_bytes,down_bytes\n"
            "0,10,2,8,20,0.5,1000000,3000000\n"
            "1,18,2,0,20,0.9,1000000,3000000\n");
}

TEST(ForecastText, OfManyNodesTheSlowestAreShown) {
  Forecast forecast;
  forecast.rounds = 1;
  forecast.total_s = 100;
  for (int n = 0; n < 100; ++n) forecast.nodes.push_back({1.0 + n, 0, 99.0 - n, 0, 0});
  const std::string text = ForecastText(forecast, {});
  EXPECT_THAT(text, HasSubstr("node 99 "));
  EXPECT_THAT(text, HasSubstr("node 68 "));
  EXPECT_THAT(text, testing::Not(HasSubstr("node 67 ")));
  EXPECT_THAT(text, HasSubstr("and 68 nodes that wait longer"));
}

}  // namespace
}  // namespace spes::trainer
