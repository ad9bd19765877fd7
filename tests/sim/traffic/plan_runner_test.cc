#include "sim/traffic/plan_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>

#include "sim/event_loop.h"
#include "tests/sim/traffic/scripted_network.h"

namespace spes::sim {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::Pair;

// A run of a plan in which flows take their bytes in microseconds.
class PlanRunnerTest : public testing::Test {
 protected:
  PlanRunner& Make(TrafficPlan plan, int hosts, PlanRunner::Options options = {}) {
    runner = std::make_unique<PlanRunner>(
        std::move(plan), hosts, network, options,
        PlanRunner::Events{
            .host_finished = [this](int host) { finished.emplace_back(host, loop.Now()); },
            .finished = [this] { ends.push_back(loop.Now()); },
            .flow = [this](int i, const FlowResult& r) { flows.emplace_back(i, r.start); },
            .failed = [this](int i, const FlowResult& r) { failure.emplace(i, r.outcome); }});
    runner->Begin();
    return *runner;
  }
  void ReadyAll(int hosts) {
    for (int host = 0; host < hosts; ++host) runner->Ready(host);
  }

  ScriptedNetwork network;
  EventLoop loop{&network};
  std::unique_ptr<PlanRunner> runner;
  std::vector<std::pair<int, Time>> finished, flows;  // flows: transfer, start
  std::vector<Time> ends;
  std::optional<std::pair<int, FlowOutcome>> failure;
};

TEST_F(PlanRunnerTest, ATransferWaitsForItsSenderAndForWhatItNeeds) {
  // 0 → 1 (10 µs) and 2 → 1 (30 µs), both before 1 → 3.
  Make({{{1, 3, 5, {1, 2}}, {0, 1, 10, {}}, {2, 1, 30, {}}}}, 4);
  runner->Ready(0);
  runner->Ready(1);
  runner->Ready(3);
  loop.At(100us, [&] { runner->Ready(2); });
  loop.Run();
  EXPECT_THAT(flows, ElementsAre(Pair(1, 0us), Pair(2, 100us), Pair(0, 130us)));
  EXPECT_THAT(finished, ElementsAre(Pair(0, 10us), Pair(2, 130us), Pair(1, 135us), Pair(3, 135us)));
  EXPECT_THAT(ends, ElementsAre(135us));
  EXPECT_FALSE(runner->running());
}

TEST_F(PlanRunnerTest, AHostMayReceiveBeforeItIsReady) {
  Make({{{0, 1, 10, {}}}}, 2);
  runner->Ready(0);
  loop.At(50us, [&] { runner->Ready(1); });
  loop.Run();
  EXPECT_THAT(flows, ElementsAre(Pair(0, 0us)));
  EXPECT_THAT(finished, ElementsAre(Pair(0, 10us), Pair(1, 50us)));
  EXPECT_THAT(ends, ElementsAre(50us));
}

TEST_F(PlanRunnerTest, AHostWithoutTransfersIsFinishedWhenReady) {
  Make({}, 2);
  runner->Ready(1);
  EXPECT_THAT(finished, ElementsAre(Pair(1, 0us)));
  EXPECT_TRUE(ends.empty());
  runner->Ready(0);
  EXPECT_THAT(ends, ElementsAre(0us));
}

TEST_F(PlanRunnerTest, JointsTakeNoTimeHoweverLongTheirChain) {
  TrafficPlan plan{{{0, 1, 10, {}}}};
  for (int i = 0; i < 300'000; ++i) plan.transfers.push_back({1, 1, 0, {i}});
  plan.transfers.push_back({1, 0, 5, {300'000}});
  Make(std::move(plan), 2);
  ReadyAll(2);
  loop.Run();
  EXPECT_THAT(ends, ElementsAre(15us));
  EXPECT_EQ(network.started.size(), 2u);
}

TEST_F(PlanRunnerTest, LimitedSendsGoInPlanOrder) {
  // Transfer 0 may start last: it waits for 3.
  Make({{{0, 1, 10, {3}}, {0, 2, 10, {}}, {0, 3, 10, {}}, {1, 0, 5, {}}}}, 4, {.sends = 1});
  ReadyAll(4);
  loop.Run();
  EXPECT_THAT(flows, ElementsAre(Pair(3, 0us), Pair(1, 0us), Pair(0, 10us), Pair(2, 20us)));
  EXPECT_THAT(ends, ElementsAre(30us));
}

TEST_F(PlanRunnerTest, TwoSendsAtOnceAreTwo) {
  Make({{{0, 1, 10, {}}, {0, 2, 30, {}}, {0, 3, 10, {}}, {0, 4, 10, {}}}}, 5, {.sends = 2});
  ReadyAll(5);
  loop.Run();
  EXPECT_THAT(flows, ElementsAre(Pair(0, 0us), Pair(2, 10us), Pair(1, 0us), Pair(3, 20us)));
}

// As messages of the protocol do, see SimRuntime.
TEST_F(PlanRunnerTest, BetweenTwoHostsGoesOneAfterTheOther) {
  // Transfer 1 may start last, and passes 3 by then; 2 goes the other way.
  Make({{{0, 1, 10, {}}, {0, 1, 20, {2}}, {1, 0, 5, {}}, {0, 1, 30, {}}, {0, 2, 15, {}}}}, 3);
  ReadyAll(3);
  loop.Run();
  EXPECT_THAT(flows,
              ElementsAre(Pair(2, 0us), Pair(0, 0us), Pair(4, 0us), Pair(1, 10us), Pair(3, 30us)));
}

TEST_F(PlanRunnerTest, AFailedFlowEndsTheRunOnce) {
  network.script = [](const Flow& flow) {
    if (flow.bytes == 20) return ScriptedNetwork::Fate{20us, FlowOutcome::kStalled};
    return ScriptedNetwork::Fate{std::chrono::microseconds(flow.bytes)};
  };
  Make({{{0, 1, 10, {}}, {1, 0, 20, {}}, {2, 1, 90, {}}, {1, 2, 5, {1}}, {1, 2, 5, {0}}}}, 3);
  ReadyAll(3);
  loop.Run();
  ASSERT_TRUE(failure);
  EXPECT_EQ(*failure, std::pair(1, FlowOutcome::kStalled));
  EXPECT_TRUE(ends.empty());
  EXPECT_FALSE(runner->running());
  EXPECT_EQ(loop.Now(), 20us) << "the long flow went on";
  EXPECT_THAT(flows, ElementsAre(Pair(0, 0us), Pair(4, 10us), Pair(1, 0us), Pair(2, 0us)));
  // The next run is a run like any other.
  network.script = [](const Flow&) { return ScriptedNetwork::Fate{1us}; };
  runner->Begin();
  ReadyAll(3);
  loop.Run();
  EXPECT_EQ(ends.size(), 1u);
}

TEST_F(PlanRunnerTest, LateFlowsOfAFailedRunDoNotDisturbTheNext) {
  network.script = [](const Flow& flow) {
    return ScriptedNetwork::Fate{std::chrono::microseconds(flow.bytes),
                                 flow.bytes == 20 ? FlowOutcome::kFailed : FlowOutcome::kDone};
  };
  runner = std::make_unique<PlanRunner>(
      TrafficPlan{{{0, 1, 20, {}}, {1, 0, 50, {}}, {0, 1, 5, {1}}}}, 2, network,
      PlanRunner::Options{},
      PlanRunner::Events{.host_finished = {},
                         .finished = [this] { ends.push_back(loop.Now()); },
                         .flow = {},
                         .failed =
                             [this](int, const FlowResult&) {
                               network.script = [](const Flow& flow) {
                                 return ScriptedNetwork::Fate{
                                     std::chrono::microseconds(flow.bytes)};
                               };
                               runner->Begin();
                               ReadyAll(2);
                             }});
  runner->Begin();
  ReadyAll(2);
  loop.Run();
  EXPECT_THAT(ends, ElementsAre(75us));
}

TEST_F(PlanRunnerTest, ARunnerMayGoWhileFlowsAreUnderWay) {
  Make({{{0, 1, 10, {}}}}, 2);
  ReadyAll(2);
  runner.reset();
  loop.Run();
  EXPECT_TRUE(flows.empty());
  EXPECT_EQ(loop.Now(), 0us) << "not cancelled";
}

TEST_F(PlanRunnerTest, OrderOfCallsIsChecked) {
  Make({{{0, 1, 10, {}}}}, 2);
  EXPECT_THROW(runner->Begin(), std::logic_error);
  runner->Ready(0);
  EXPECT_THROW(runner->Ready(0), std::logic_error);
  runner->Ready(1);
  loop.Run();
  EXPECT_THROW(runner->Ready(0), std::logic_error);
  EXPECT_THROW(PlanRunner({{{0, 0, 1, {}}}}, 1, network, {}, {}), std::invalid_argument);
  EXPECT_THROW(PlanRunner({}, 1, network, {.streams = 0}, {}), std::invalid_argument);
  EXPECT_THROW(PlanRunner({}, 1, network, {.sends = -1}, {}), std::invalid_argument);
}

TEST_F(PlanRunnerTest, EachPairIsPreparedOnce) {
  Make({{{0, 1, 10, {}}, {0, 1, 5, {}}, {1, 0, 5, {}}, {1, 1, 0, {}}}}, 2);
  runner->Prepare();
  EXPECT_THAT(network.prepared, ElementsAre(Pair(0, 1), Pair(1, 0)));
}

// 100 rounds of 1000 nodes, each begun by the end of the one before.
TEST_F(PlanRunnerTest, ManyRoundsOfManyNodes) {
  constexpr int kNodes = 1000, kRounds = 100;
  constexpr std::int64_t kBytes = 8'000'000'000;
  TrafficPlan plan;
  std::vector<int> uploads;
  for (int n = 0; n < kNodes; ++n) {
    uploads.push_back(n);
    plan.transfers.push_back({n, kNodes, kBytes, {}});
  }
  plan.transfers.push_back({kNodes, kNodes, 0, uploads});
  for (int n = 0; n < kNodes; ++n) plan.transfers.push_back({kNodes, n, kBytes, {kNodes}});
  int rounds = 0;
  std::int64_t bytes = 0;
  runner = std::make_unique<PlanRunner>(
      std::move(plan), kNodes + 1, network, PlanRunner::Options{},
      PlanRunner::Events{.host_finished = {},
                         .finished =
                             [&] {
                               if (++rounds == kRounds) return;
                               runner->Begin();
                               ReadyAll(kNodes + 1);
                             },
                         .flow = [&](int, const FlowResult& r) { bytes += r.delivered_bytes; },
                         .failed = {}});
  runner->Begin();
  ReadyAll(kNodes + 1);
  loop.Run();
  EXPECT_EQ(rounds, kRounds);
  EXPECT_EQ(bytes, std::int64_t{kRounds} * 2 * kNodes * kBytes);
  EXPECT_EQ(loop.Now(), kRounds * 16'000s);
}

}  // namespace
}  // namespace spes::sim
