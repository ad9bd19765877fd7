#include "sim/event_loop.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "sim/network.h"
#include "tests/sim/levels.h"

namespace spes::sim {
namespace {

using namespace std::chrono_literals;

TEST(EventLoop, RunsInOrderOfTimeThenOfScheduling) {
  EventLoop loop;
  std::string seen;
  loop.At(2s, [&] { seen += 'c'; });
  loop.At(1s, [&] { seen += 'a'; });
  loop.At(1s, [&] { seen += 'b'; });
  loop.After(3s, [&] { seen += 'd'; });
  loop.Run();
  EXPECT_EQ(seen, "abcd");
  EXPECT_EQ(loop.Now(), 3s);
  EXPECT_FALSE(loop.Step());
}

TEST(EventLoop, EventsScheduleAndCancelEvents) {
  EventLoop loop;
  std::vector<Time> seen;
  const auto never = loop.At(5s, [&] { ADD_FAILURE(); });
  loop.At(1s, [&] {
    loop.Cancel(never);
    loop.After(0s, [&] { seen.push_back(loop.Now()); });
    loop.After(2s, [&] { seen.push_back(loop.Now()); });
  });
  loop.Run();
  EXPECT_EQ(seen, (std::vector<Time>{1s, 3s}));
  loop.Cancel(never);
  loop.Cancel(12345);
}

TEST(EventLoop, StopsWhenAsked) {
  EventLoop loop;
  int ran = 0;
  for (int i = 1; i <= 5; ++i) loop.At(std::chrono::seconds(i), [&] { ++ran; });
  loop.Run([&] { return ran == 2; });
  EXPECT_EQ(ran, 2);
  loop.Run();
  EXPECT_EQ(ran, 5);
}

TEST(EventLoop, AnExceptionLeavesItUsable) {
  EventLoop loop;
  int ran = 0;
  loop.At(1s, [] { throw std::runtime_error("from an event"); });
  loop.At(2s, [&] { ++ran; });
  EXPECT_THROW(loop.Run(), std::runtime_error);
  loop.Run();
  EXPECT_EQ(ran, 1);
}

TEST(EventLoop, ThePastIsRefused) {
  EventLoop loop;
  loop.At(1s, [&] { EXPECT_THROW(loop.At(999ms, [] {}), std::logic_error); });
  loop.Run();
  EXPECT_THROW(loop.After(-1ns, [] {}), std::logic_error);
}

class EventLoopOverNetwork : public testing::TestWithParam<Level> {};

// 1 MB at 8 Mbps takes about a second.
TEST_P(EventLoopOverNetwork, FlowsAndEventsShareOneClock) {
  const auto network = GetParam().make(Star(3, {.down_bps = 8e6, .up_bps = 8e6, .rtt = 5ms}), {});
  EventLoop loop(network.get());
  std::vector<std::string> seen;
  loop.At(100ms, [&] {
    EXPECT_EQ(network->Now(), 100ms);
    network->Start({.from = 0, .to = 1, .bytes = 1'000'000}, [&](const FlowResult& result) {
      seen.push_back("flow");
      EXPECT_EQ(result.start, 100ms);
      EXPECT_EQ(result.end, loop.Now());
      EXPECT_GT(loop.Now(), 1100ms);
      EXPECT_LT(loop.Now(), 1500ms);
      loop.After(250ms, [&, due = loop.Now() + 250ms] {
        seen.push_back("after the flow");
        EXPECT_EQ(loop.Now(), due);
      });
    });
  });
  loop.At(500ms, [&] {
    seen.push_back("during the flow");
    EXPECT_EQ(loop.Now(), 500ms);
  });
  loop.At(10s, [&] { seen.push_back("late"); });
  loop.Run();
  EXPECT_EQ(seen, (std::vector<std::string>{"during the flow", "flow", "after the flow", "late"}));
  EXPECT_EQ(loop.Now(), 10s);
}

TEST_P(EventLoopOverNetwork, AFlowMayCancelTheEventThatWaitsForIt) {
  const auto network = GetParam().make(Star(2, {.down_bps = 8e6, .up_bps = 8e6, .rtt = 5ms}), {});
  EventLoop loop(network.get());
  bool done = false;
  const auto deadline = loop.At(60s, [] { ADD_FAILURE() << "the deadline fired"; });
  network->Start({.from = 0, .to = 1, .bytes = 1000}, [&](const FlowResult&) {
    done = true;
    loop.Cancel(deadline);
  });
  loop.Run();
  EXPECT_TRUE(done);
  EXPECT_LT(loop.Now(), 1s);
}

INSTANTIATE_TEST_SUITE_P(Levels, EventLoopOverNetwork, testing::ValuesIn(Levels()), LevelName);

}  // namespace
}  // namespace spes::sim
