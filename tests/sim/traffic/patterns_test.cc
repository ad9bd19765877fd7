// The laws of the exchange patterns: who sends how much, and how long it takes on a network without
// start-up or losses.
#include "sim/traffic/patterns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

#include "sim/event_loop.h"
#include "sim/traffic/plan_runner.h"
#include "tests/sim/levels.h"

namespace spes::sim {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr ExchangePattern kPatterns[] = {ExchangePattern::kCoordinator,
                                         ExchangePattern::kCoordinators, ExchangePattern::kRing,
                                         ExchangePattern::kDirect, ExchangePattern::kTree};

std::vector<int> AllOf(int nodes) {
  std::vector<int> all(static_cast<std::size_t>(nodes));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// N nodes at three sites; the coordinators are the hosts behind them.
Exchange Nodes(int nodes, int coordinators = 1) {
  Exchange exchange{.nodes = nodes, .payloads = {}, .coordinators = {}, .sites = {}};
  for (int k = 0; k < coordinators; ++k) exchange.coordinators.push_back(nodes + k);
  for (int n = 0; n < nodes; ++n) exchange.sites.push_back(n % 3);
  return exchange;
}

// The shared parameters, and experts of `owners` nodes.
Exchange Spes(int nodes, std::int64_t shared, std::int64_t expert, int owners,
              int coordinators = 1) {
  Exchange exchange = Nodes(nodes, coordinators);
  exchange.payloads.push_back({AllOf(nodes), shared, shared});
  for (int n = 0; n < owners; ++n) exchange.payloads.push_back({{n}, expert, expert});
  return exchange;
}

int Hosts(const Exchange& e) { return e.nodes + static_cast<int>(e.coordinators.size()); }

std::vector<HostBytes> Bytes(ExchangePattern pattern, const Exchange& exchange) {
  const TrafficPlan plan = MakePlan(pattern, exchange);
  EXPECT_NO_THROW(Validate(plan, Hosts(exchange)));
  return BytesOfHosts(plan, Hosts(exchange));
}

std::int64_t Total(const std::vector<HostBytes>& hosts) {
  std::int64_t total = 0;
  for (const HostBytes& host : hosts) total += host.up;
  return total;
}

// Runs the plan on the ideal network; host h is ready at `ready[h]`, all others at 0.
struct Timing {
  std::vector<Time> finished;  // [host]
  Time end{0};
};
Timing Execute(const TrafficPlan& plan, const Topology& topology,
               const std::vector<std::pair<int, Time>>& late = {}) {
  const auto network = MakeIdealNetwork(topology, {});
  EventLoop loop(network.get());
  const int hosts = static_cast<int>(topology.hosts.size());
  Timing timing{std::vector<Time>(topology.hosts.size(), -1s)};
  PlanRunner runner(
      plan, hosts, *network, {},
      {.host_finished =
           [&](int host) { timing.finished[static_cast<std::size_t>(host)] = loop.Now(); },
       .finished = [&] { timing.end = loop.Now(); },
       .flow = {},
       .failed = [](int, const FlowResult&) { ADD_FAILURE(); }});
  runner.Begin();
  for (int host = 0; host < hosts; ++host) {
    Time at{0};
    for (const auto& [which, when] : late) at = which == host ? when : at;
    loop.At(at, [&runner, host] { runner.Ready(host); });
  }
  loop.Run();
  EXPECT_FALSE(runner.running());
  return timing;
}

TEST(Patterns, TheCoordinatorTakesEachTrainersBytesAndGivesWhatIsLacking) {
  const auto bytes = Bytes(ExchangePattern::kCoordinator, Spes(4, 1000, 70, 4));
  for (int n = 0; n < 4; ++n) {
    EXPECT_EQ(bytes[static_cast<std::size_t>(n)].up, 1070);
    EXPECT_EQ(bytes[static_cast<std::size_t>(n)].down, 1000 + 3 * 70);
  }
  EXPECT_EQ(bytes[4].down, 4 * 1070);
  EXPECT_EQ(bytes[4].up, 4 * 1210);
}

TEST(Patterns, SeveralCoordinatorsDivideEachPayload) {
  const Exchange exchange = Spes(4, 1001, 70, 4, 3);
  const auto bytes = Bytes(ExchangePattern::kCoordinators, exchange);
  for (int n = 0; n < 4; ++n) {
    EXPECT_EQ(bytes[static_cast<std::size_t>(n)].up, 1071);
    EXPECT_EQ(bytes[static_cast<std::size_t>(n)].down, 1001 + 3 * 70);
  }
  EXPECT_EQ(bytes[4].down, 4 * (334 + 24));
  EXPECT_EQ(bytes[5].down, 4 * (334 + 23));
  EXPECT_EQ(bytes[6].down, 4 * (333 + 23));
  EXPECT_EQ(Total(bytes), Total(Bytes(ExchangePattern::kCoordinator, Spes(4, 1001, 70, 4))));
}

TEST(Patterns, ANodeOfTheRingSendsTwiceItsShareOfTheOthers) {
  for (const int n : {2, 3, 8}) {
    const std::int64_t S = 1000 * n;
    for (const HostBytes& host : Bytes(ExchangePattern::kRing, Spes(n, S, 0, 0, 0))) {
      EXPECT_EQ(host.up, 2 * (n - 1) * S / n);
      EXPECT_EQ(host.down, 2 * (n - 1) * S / n);
    }
  }
}

// Chunks of 334, 334 and 333 bytes. Node n never sends the chunk that it reduces, n + 1, before the
// all-gather, nor there the one that its successor reduces.
TEST(Patterns, UnevenChunksOfTheRing) {
  const auto bytes = Bytes(ExchangePattern::kRing, Spes(3, 1001, 0, 0, 0));
  EXPECT_EQ(bytes[0].up, (1001 - 334) + (1001 - 333));
  EXPECT_EQ(bytes[1].up, (1001 - 333) + (1001 - 334));
  EXPECT_EQ(bytes[2].up, (1001 - 334) + (1001 - 334));
}

TEST(Patterns, ExpertsTravelInTheAllGatherOfTheRing) {
  const auto bytes = Bytes(ExchangePattern::kRing, Spes(4, 4000, 70, 4, 0));
  for (const HostBytes& host : bytes) {
    EXPECT_EQ(host.up, 6000 + 3 * 70);
    EXPECT_EQ(host.down, 6000 + 3 * 70);
  }
}

TEST(Patterns, TotalsFollowClosedForms) {
  constexpr int kN = 6;
  constexpr std::int64_t kUp = 1'000'003, kDown = 900'001, kExpertUp = 5003, kExpertDown = 4001,
                         kPairUp = 707, kPairDown = 603;
  Exchange exchange = Nodes(kN, 1);  // nodes 0 to 5 at sites 0 1 2 0 1 2
  exchange.payloads = {{AllOf(kN), kUp, kDown}, {{4, 1, 2}, kPairUp, kPairDown}};
  for (int n = 0; n < 4; ++n) exchange.payloads.push_back({{n}, kExpertUp, kExpertDown});
  const std::int64_t downs = kN * kDown + kN * kPairDown + 4 * (kN - 1) * kExpertDown;
  EXPECT_EQ(Total(Bytes(ExchangePattern::kCoordinator, exchange)),
            kN * kUp + 3 * kPairUp + 4 * kExpertUp + downs);
  // A reducer has its own chunk: one node fewer gets it.
  const std::int64_t chunked =
      (kN - 1) * kUp + 2 * kPairUp + (kN - 1) * (kDown + kPairDown + 4 * kExpertDown);
  EXPECT_EQ(Total(Bytes(ExchangePattern::kRing, exchange)), chunked);
  EXPECT_EQ(Total(Bytes(ExchangePattern::kDirect, exchange)), chunked);
  // Members and heads send what they train, heads once for the site: the shared payload 3 times,
  // the one of nodes 1, 4 (one site) and 2 twice, of four experts each. Root to heads: experts not
  // to the site of their only trainer.
  const std::int64_t members = 3 * kUp + kPairUp + kExpertUp;  // nodes 3, 4 and 5
  const std::int64_t heads = 3 * kUp + 2 * kPairUp + 4 * kExpertUp;
  const std::int64_t to_heads = 3 * (kDown + kPairDown) + 2 * 4 * kExpertDown;
  const std::int64_t to_members = 3 * (kDown + kPairDown) + (3 * 4 - 1) * kExpertDown;
  EXPECT_EQ(Total(Bytes(ExchangePattern::kTree, exchange)),
            members + heads + to_heads + to_members);
}

// Payloads that others than their one trainer lack: sizes are powers, so that a sum of bytes tells
// which payloads are in it, and how often.
TEST(Patterns, EveryNodeGetsEachPayloadThatItLacksOnce) {
  constexpr int kN = 7;
  for (const ExchangePattern pattern : kPatterns) {
    for (const bool owner_receives : {false, true}) {
      Exchange exchange = Nodes(kN, pattern == ExchangePattern::kCoordinators ? 3 : 1);
      exchange.owner_receives = owner_receives;
      std::int64_t all = 0, size = 3;
      std::vector<std::int64_t> owned(kN);
      for (int n = 0; n < kN; ++n, size *= 100) {
        if (n == 4) continue;  // trains nothing
        exchange.payloads.push_back({{n}, size, size});
        owned[static_cast<std::size_t>(n)] = size;
        all += size;
      }
      const auto bytes = Bytes(pattern, exchange);
      const bool back = owner_receives && pattern != ExchangePattern::kRing &&
                        pattern != ExchangePattern::kDirect;
      for (int n = 0; n < kN; ++n) {
        const auto i = static_cast<std::size_t>(n);
        std::int64_t down = bytes[i].down;
        if (pattern == ExchangePattern::kTree && n < 3) {
          // A head also takes its members' values, and without coming back they are all it needs.
          for (int member = n + 3; back && member < kN; member += 3) {
            down -= owned[static_cast<std::size_t>(member)];
          }
        }
        EXPECT_EQ(down, back ? all : all - owned[i]) << Name(pattern) << " node " << n;
      }
    }
  }
}

// Nobody is through before the last is ready and its share has come.
TEST(Patterns, ALateNodeHoldsUpAllOthers) {
  for (const ExchangePattern pattern : kPatterns) {
    const Exchange exchange = Spes(5, 50'000, 1000, 5, 1);
    const Timing timing = Execute(MakePlan(pattern, exchange), Star(6, {.rtt = 2ms}), {{3, 60s}});
    for (int n = 0; n < 5; ++n) {
      EXPECT_GT(timing.finished[static_cast<std::size_t>(n)], 60s)
          << Name(pattern) << " node " << n;
    }
    EXPECT_LT(timing.end, 61s) << Name(pattern);
  }
}

// Where a coordinator is a node as well, nothing needs to travel to it, but it still has to wait.
TEST(Patterns, ACoordinatorMayBeANode) {
  for (const ExchangePattern pattern :
       {ExchangePattern::kCoordinator, ExchangePattern::kCoordinators, ExchangePattern::kTree}) {
    for (const int late : {0, 1, 3}) {
      Exchange exchange = Spes(5, 50'000, 1000, 5);
      exchange.coordinators = {0};
      EXPECT_LT(Total(Bytes(pattern, exchange)), Total(Bytes(pattern, Spes(5, 50'000, 1000, 5))));
      const Timing timing =
          Execute(MakePlan(pattern, exchange), Star(5, {.rtt = 2ms}), {{late, 60s}});
      for (int n = 0; n < 5; ++n) {
        EXPECT_GE(timing.finished[static_cast<std::size_t>(n)], 60s) << Name(pattern);
      }
      EXPECT_EQ(timing.finished[2] > 60s, true) << Name(pattern) << " without waiting for " << late;
    }
  }
}

// A head hands on what its members alone train, although the root has nothing new for the site.
TEST(Patterns, AHeadWaitsForItsMembers) {
  Exchange exchange = Spes(3, 0, 1'000'000, 3);
  exchange.sites = {7, 7, 7};
  const Timing timing =
      Execute(MakePlan(ExchangePattern::kTree, exchange), Star(4, {}), {{2, 60s}});
  EXPECT_GT(timing.finished[1], 60s);
}

TEST(Patterns, NodesBeginWithDifferentCoordinators) {
  const TrafficPlan plan = MakePlan(ExchangePattern::kCoordinators, Spes(3, 900, 0, 0, 3));
  EXPECT_EQ(plan.transfers[0].to, 3);
  EXPECT_EQ(plan.transfers[1].to, 4);
  EXPECT_EQ(plan.transfers[2].to, 5);
}

// What is ready travels at once, whatever is still to be reduced.
TEST(Patterns, OwnersSendDirectlyAsSoonAsTheyAreReady) {
  const Exchange exchange = Spes(3, 0, 1'000'000, 2, 0);
  const Timing timing = Execute(MakePlan(ExchangePattern::kDirect, exchange),
                                Star(3, {.down_bps = 8e6, .up_bps = 8e6}), {{1, 60s}});
  EXPECT_EQ(timing.finished[0], 62s) << "2 s up from node 1";
  EXPECT_EQ(timing.end, 62s);
  const TrafficPlan plan = MakePlan(ExchangePattern::kDirect, Spes(4, 1000, 77, 4, 0));
  EXPECT_EQ(std::count_if(plan.transfers.begin(), plan.transfers.end(),
                          [](const auto& each) { return each.bytes == 77 && each.after.empty(); }),
            4 * 3);
}

TEST(Patterns, TheRingTakesItsLawOnAnIdealNetwork) {
  for (const int n : {2, 4, 8}) {
    constexpr double kBps = 8e8;
    const std::int64_t S = 80'000'000;
    const Timing timing = Execute(MakePlan(ExchangePattern::kRing, Spes(n, S, 0, 0, 0)),
                                  Star(n, {.down_bps = kBps, .up_bps = kBps, .rtt = 15ms}));
    const double transfer = 2.0 * (n - 1) / n * static_cast<double>(S) * 8 / kBps;
    EXPECT_EQ(timing.end, FromSeconds(transfer) + 2 * (n - 1) * 30ms / 2) << n;
  }
}

TEST(Patterns, OtherPatternsTakeTheirLawsOnAnIdealNetwork) {
  constexpr double kBps = 8e8;  // 100 MB/s
  const Topology star = Star(5, {.down_bps = kBps, .up_bps = kBps, .rtt = 15ms});
  const Exchange exchange = Spes(4, 80'000'000, 0, 0, 1);
  // 4 × 80 MB into one link, and out of it again.
  EXPECT_EQ(Execute(MakePlan(ExchangePattern::kCoordinator, exchange), star).end,
            2 * (3200ms + 15ms));
  // Chunks of 20 MB from and to three others at once, twice.
  EXPECT_EQ(Execute(MakePlan(ExchangePattern::kDirect, exchange), star).end, 2 * (600ms + 15ms));
  // Four coordinators at the nodes themselves send as the direct pattern does.
  Exchange at_nodes = exchange;
  at_nodes.coordinators = {0, 1, 2, 3};
  EXPECT_EQ(Execute(MakePlan(ExchangePattern::kCoordinators, at_nodes), star).end,
            2 * (600ms + 15ms));
  // Three heads fill the link of the root all the time, although node 0 waits for its member 3
  // first; then root to heads, then node 0 to its member.
  EXPECT_EQ(Execute(MakePlan(ExchangePattern::kTree, exchange), star).end,
            (2400ms + 15ms) + (2400ms + 15ms) + (800ms + 15ms));
}

TEST(Patterns, OneNodeHasNobodyToExchangeWith) {
  const Exchange exchange = Spes(1, 1000, 70, 1);
  EXPECT_TRUE(MakePlan(ExchangePattern::kRing, exchange).transfers.empty());
  EXPECT_EQ(Total(Bytes(ExchangePattern::kDirect, exchange)), 0);
  // It still publishes through its coordinator.
  EXPECT_EQ(Total(Bytes(ExchangePattern::kCoordinator, exchange)), 1070);
  EXPECT_EQ(Total(Bytes(ExchangePattern::kTree, exchange)), 1070);
  Exchange back = exchange;
  back.owner_receives = true;
  EXPECT_EQ(Total(Bytes(ExchangePattern::kCoordinator, back)), 2 * 1070);
}

TEST(Patterns, SizesBeyond32BitsAreExact) {
  for (const ExchangePattern pattern : kPatterns) {
    const Exchange exchange = Spes(3, 300'000'000'000, 8'000'000'000, 3);
    for (int n = 0; n < 3; ++n) {
      const HostBytes host = Bytes(pattern, exchange)[static_cast<std::size_t>(n)];
      EXPECT_GE(host.up, 208'000'000'000) << Name(pattern);
      EXPECT_GE(host.down, 216'000'000'000) << Name(pattern);
    }
  }
}

// The number of transfers and dependencies of a thousand nodes through a coordinator is linear.
TEST(Patterns, ManyNodesNeedFewDependencies) {
  for (const ExchangePattern pattern : {ExchangePattern::kCoordinator, ExchangePattern::kTree}) {
    const TrafficPlan plan = MakePlan(pattern, Spes(1000, 1000, 70, 1000));
    std::size_t size = plan.transfers.size();
    for (const auto& transfer : plan.transfers) size += transfer.after.size();
    EXPECT_LT(size, 6'100u) << Name(pattern);
  }
}

TEST(Patterns, EachMistakeIsNamed) {
  const auto refused = [](ExchangePattern pattern, const Exchange& exchange,
                          const std::string& text) {
    try {
      MakePlan(pattern, exchange);
      ADD_FAILURE() << "accepted: " << text;
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), HasSubstr(text));
    }
  };
  using enum ExchangePattern;
  refused(kRing, Nodes(0), "0 nodes: at least 1");
  refused(kCoordinator, Nodes(2, 2), "the pattern coordinator has 2 coordinators: it needs 1");
  refused(kTree, Nodes(2, 0), "the pattern tree has 0 coordinators: it needs 1");
  refused(kCoordinators, Nodes(2, 0), "it needs at least 1");
  Exchange exchange = Nodes(3);
  exchange.sites.pop_back();
  refused(kTree, exchange, "the sites of 2 nodes are given: there are 3 nodes");
  exchange = Nodes(3);
  exchange.payloads = {{{}, 1, 1}};
  refused(kRing, exchange, "payload 0 is trained by no node");
  exchange.payloads = {{{0, 3}, 1, 1}};
  refused(kRing, exchange, "payload 0 is trained by node 3: there are 3, counted from 0");
  exchange.payloads = {{{1, 1}, 1, 1}};
  refused(kRing, exchange, "payload 0 names node 1 twice");
  exchange.payloads = {{{1}, 1, -1}};
  refused(kRing, exchange, "payload 0 has 1 bytes up and -1 down");
  exchange.payloads.clear();
  exchange.coordinators = {5, 5};
  refused(kCoordinators, exchange, "host 5 is a coordinator twice");
}

}  // namespace
}  // namespace spes::sim
