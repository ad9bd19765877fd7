#include "trainer/runtime/sim_runtime.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/trainer/protocol/fake_node.h"
#include "tests/trainer/protocol/memory_recorder.h"

namespace spes::trainer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Two nodes and a coordinator at one site, 8 Mbps = 1 MB/s each way.
class SimRuntimeTest : public ::testing::Test {
 protected:
  static sim::Topology Three() {
    sim::Topology t;
    t.sites = {"here"};
    t.paths = {{sim::SitePath{}}};
    for (const char* name : {"a", "b", "coordinator"}) {
      t.hosts.push_back({name, 0, {.down_bps = 8e6, .up_bps = 8e6, .rtt = milliseconds(20)}});
    }
    return t;
  }
  std::unique_ptr<sim::Network> network = sim::MakeIdealNetwork(Three(), {});
  sim::EventLoop loop{network.get()};
  ComputePool pool{2};
  MemoryRecorder recorder;
  SimRuntime runtime{loop, *network, pool, recorder, 2, 1};
};

TEST_F(SimRuntimeTest, AMessageArrivesWhenTheNetworkSaysSoAndIsRecorded) {
  std::vector<std::pair<NodeId, double>> arrivals;
  runtime.Connect(kCoordinator, [&](NodeId from, const Message& m) {
    EXPECT_EQ(std::get<Leave>(m).reason, "home");
    arrivals.emplace_back(from, sim::ToSeconds(loop.Now()));
  });
  double delivered = 0;
  runtime.endpoint(1).Send(kCoordinator, Leave{"home"}, 1'000'000,
                           [&] { delivered = sim::ToSeconds(loop.Now()); });
  loop.Run();
  ASSERT_EQ(arrivals.size(), 1U);
  EXPECT_EQ(arrivals[0].first, 1);
  EXPECT_NEAR(arrivals[0].second, 1.02, 1e-6);  // 1 s and half of two 20 ms round trips
  EXPECT_EQ(delivered, arrivals[0].second);
  ASSERT_EQ(recorder.flows.size(), 1U);
  EXPECT_EQ(recorder.flows[0].from, 1);
  EXPECT_EQ(recorder.flows[0].to, kCoordinator);
  EXPECT_EQ(recorder.flows[0].bytes, 1'000'000);
  EXPECT_EQ(recorder.flows[0].message, "leave");
  EXPECT_EQ(recorder.flows[0].outcome, "done");
}

TEST_F(SimRuntimeTest, MessagesWithParametersKeepTheirOrderAndControlOvertakesThem) {
  std::vector<std::string> order;
  runtime.Connect(0, [&](NodeId, const Message& m) {
    order.emplace_back(std::string(Name(m)) + std::to_string(RoundOf(m)));
  });
  runtime.Connect(1, [](NodeId, const Message&) {});
  Runtime& from = runtime.endpoint(kCoordinator);
  from.Send(0, Update{1, 0, false, {}, {}}, 2'000'000);
  from.Send(0, Update{2, 0, false, {}, {}}, 1000);
  from.Send(0, Reject{RejectReason::kCorrupt, 3, ""}, 100);
  loop.Run();
  EXPECT_EQ(order, (std::vector<std::string>{"reject3", "update1", "update2"}));
}

// What waits behind what is underway is lost as well, in both directions.
TEST_F(SimRuntimeTest, WhatIsOnItsWayOverAConnectionThatIsCutIsLostAndNobodyIsTold) {
  std::vector<std::string> arrived;
  const auto note = [&](const std::string& at) {
    return [&arrived, at](NodeId, const Message& m) {
      arrived.push_back(at + std::string(Name(m)) + std::to_string(RoundOf(m)));
    };
  };
  const auto lost = [](NodeId, const std::string&) { FAIL() << "told"; };
  runtime.Connect(kCoordinator, note("coordinator: "), lost);
  runtime.Connect(0, note("0: "), lost);
  runtime.Connect(1, note("1: "), lost);
  Runtime& coordinator = runtime.endpoint(kCoordinator);
  coordinator.Send(0, Update{1, 0, false, {}, {}}, 1'000'000, [] { FAIL() << "delivered"; });
  coordinator.Send(0, Update{2, 0, false, {}, {}}, 1000);
  coordinator.Send(1, Update{3, 0, false, {}, {}}, 1'000'000);
  runtime.endpoint(0).Send(kCoordinator, Leave{"home"}, 1'000'000);
  loop.After(milliseconds(100), [&] { runtime.Cut(0); });
  // The connection that comes after it does not wait for what was lost, and is a new one.
  loop.After(milliseconds(200), [&] { coordinator.Send(0, Update{4, 0, false, {}, {}}, 1000); });
  loop.Run();
  EXPECT_EQ(arrived, (std::vector<std::string>{"0: update4", "1: update3"}));
  ASSERT_EQ(recorder.flows.size(), 4U);  // update 2 had not begun
  int cancelled = 0;
  for (const auto& flow : recorder.flows) cancelled += flow.outcome == "cancelled";
  EXPECT_EQ(cancelled, 2);
}

TEST_F(SimRuntimeTest, AReceiverThatCutsTheConnectionLeavesTheSenderWithoutWord) {
  runtime.Connect(kCoordinator, [&](NodeId from, const Message&) { runtime.Cut(from); });
  runtime.Connect(0, [](NodeId, const Message&) {});
  runtime.endpoint(0).Send(kCoordinator, Leave{"home"}, 1000, [] { FAIL() << "delivered"; });
  loop.Run();
  EXPECT_EQ(recorder.flows.size(), 1U);
}

TEST_F(SimRuntimeTest, WorkIsDoneInTheBackgroundAndDueAtItsChargedTime) {
  std::atomic<int> running{0};
  std::vector<double> done;
  const auto meet = [&running] {  // both are under way at once, on two threads
    ++running;
    while (running < 2) std::this_thread::yield();
  };
  runtime.endpoint(0).Compute(meet, seconds(3),
                              [&] { done.push_back(sim::ToSeconds(loop.Now())); });
  runtime.endpoint(1).Compute(meet, seconds(2),
                              [&] { done.push_back(sim::ToSeconds(loop.Now())); });
  loop.Run();
  EXPECT_EQ(done, (std::vector<double>{2, 3}));
}

TEST_F(SimRuntimeTest, AnExceptionOfTheWorkReachesTheLoopsOwner) {
  runtime.endpoint(0).Compute([] { throw std::runtime_error("no data"); }, seconds(1),
                              [] { FAIL(); });
  EXPECT_THROW(loop.Run(), std::runtime_error);
}

TEST(ComputePool, RunsWhatIsNeededSoonestFirst) {
  ComputePool pool(1);
  std::promise<void> gate;
  auto blocked = pool.Submit(sim::Time{0}, [&] { gate.get_future().wait(); });
  std::vector<int> order;
  std::vector<std::future<void>> jobs;
  for (const int due : {3, 1, 2, 1}) {
    jobs.push_back(pool.Submit(seconds(due), [&order, due] { order.push_back(due); }));
  }
  gate.set_value();
  for (auto& job : jobs) job.get();
  EXPECT_EQ(order, (std::vector<int>{1, 1, 2, 3}));
}

TEST(ComputePool, EndingDropsWhatHasNotBegun) {
  std::future<void> dropped;
  std::atomic<std::future<void>*> watched{nullptr};
  {
    ComputePool pool(1);
    std::promise<void> started;
    pool.Submit(sim::Time{0}, [&] {
      started.set_value();
      // Busy until the pool has given the other job up.
      while (watched == nullptr) std::this_thread::yield();
      watched.load()->wait();
    });
    started.get_future().wait();
    dropped = pool.Submit(sim::Time{0}, [] { FAIL(); });
    watched = &dropped;
  }
  EXPECT_THROW(dropped.get(), std::future_error);
}

}  // namespace
}  // namespace spes::trainer
