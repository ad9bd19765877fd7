// Timers, work and call-backs of a real run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "trainer/runtime/tcp/loop.h"

namespace spes::trainer {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

TEST(Loop, TimersRunInTheirOrderAndCancelledOnesDoNot) {
  ComputePool pool(1);
  Loop loop(pool);
  std::vector<int> ran;
  loop.After(milliseconds(60), [&] { ran.push_back(3); });
  const auto cancelled = loop.After(milliseconds(40), [&] { ran.push_back(9); });
  loop.After(milliseconds(20), [&] {
    ran.push_back(1);
    loop.Cancel(cancelled);
    loop.Cancel(cancelled);
    loop.Cancel(12345);
  });
  loop.After(milliseconds(0), [&] { ran.push_back(0); });
  loop.After(sim::kNever, [&] { ran.push_back(8); });
  loop.Run([&] { return ran.size() == 3; }, {});
  EXPECT_THAT(ran, ElementsAre(0, 1, 3));
}

TEST(Loop, ACancelledTimerThatIsDueAlreadyDoesNotRun) {
  ComputePool pool(1);
  Loop loop(pool);
  bool ran = false, done = false;
  Runtime::TimerId second = 0;
  loop.After(milliseconds(10), [&] { loop.Cancel(second); });
  second = loop.After(milliseconds(10), [&] { ran = true; });
  loop.After(milliseconds(40), [&] { done = true; });
  std::this_thread::sleep_for(milliseconds(50));  // all of them are due
  loop.Run([&] { return done; }, {});
  EXPECT_FALSE(ran);
}

TEST(Loop, CallsAreInOrderAndNotNested) {
  ComputePool pool(1);
  Loop loop(pool);
  std::vector<int> ran;
  bool within = false;
  for (int i = 0; i < 3; ++i) {
    loop.Call([&, i] {
      EXPECT_FALSE(within);
      within = true;
      ran.push_back(i);
      loop.Call([&, i] {
        EXPECT_FALSE(within);
        ran.push_back(10 + i);
      });
      within = false;
    });
  }
  loop.Run([&] { return ran.size() == 6; }, {});
  EXPECT_THAT(ran, ElementsAre(0, 1, 2, 10, 11, 12));
}

// Everything but call-backs goes on while the thread of the loop waits for work.
TEST(Loop, NoCallBackComesWhileWorkIsWaitedFor) {
  ComputePool pool(1);
  Loop loop(pool);
  std::vector<int> ran;
  std::promise<void> passed;
  int ticks = 0;
  loop.OnTick([&](double) {
    if (++ticks == 3) passed.set_value();
  });
  loop.Call([&] {
    loop.Call([&] { ran.push_back(3); });
    loop.After(milliseconds(0), [&] { ran.push_back(4); });
    const auto cancelled = loop.After(milliseconds(0), [&] { ran.push_back(9); });
    loop.Compute([] {}, sim::Time{0}, [&] { ran.push_back(5); });
    ran.push_back(1);
    loop.Work([&] { passed.get_future().wait(); });  // as long as that: signs of life are given
    ran.push_back(2);
    loop.Cancel(cancelled);
  });
  int user_ticks = 0;
  loop.Run([&] { return ran.size() == 5; }, [&] { user_ticks += ran.size() == 1; });
  EXPECT_THAT(ran, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_GE(user_ticks, 2) << "others see that it lives";
}

TEST(Loop, AnExceptionOfWorkIsTheCallers) {
  ComputePool pool(1);
  Loop loop(pool);
  bool caught = false, later = false;
  loop.Call([&] {
    loop.Call([&] { later = true; });
    try {
      loop.Work([] { throw std::runtime_error("a full disk"); });
    } catch (const std::runtime_error& error) {
      caught = std::string(error.what()) == "a full disk";
    }
  });
  loop.Run([&] { return later; }, {});
  EXPECT_TRUE(caught);
}

TEST(Loop, WorkIsDoneElsewhereAndReportedHereOnceItsTimeHasPassed) {
  ComputePool pool(2);
  Loop loop(pool);
  const auto here = std::this_thread::get_id();
  std::thread::id worked, reported;
  sim::Time at{0};
  const sim::Time start = loop.Now();
  loop.Compute([&] { worked = std::this_thread::get_id(); }, milliseconds(50),
               [&] {
                 reported = std::this_thread::get_id();
                 at = loop.Now();
               });
  loop.Run([&] { return at > sim::Time{0}; }, {});
  EXPECT_NE(worked, here);
  EXPECT_EQ(reported, here);
  EXPECT_GE(at - start, milliseconds(50));
}

TEST(Loop, ExceptionsReachTheCallerOfRunAndTheRestIsStillThere) {
  ComputePool pool(1);
  Loop loop(pool);
  int ran = 0;
  loop.Compute([] { throw std::runtime_error("work"); }, sim::Time{0}, [&] { ran += 100; });
  EXPECT_THAT([&] { loop.Run({}, {}); }, testing::ThrowsMessage<std::runtime_error>("work"));
  loop.Call([] { throw std::runtime_error("call"); });
  loop.Call([&] { ++ran; });
  EXPECT_THAT([&] { loop.Run({}, {}); }, testing::ThrowsMessage<std::runtime_error>("call"));
  loop.Run([&] { return ran > 0; }, {});
  EXPECT_EQ(ran, 1);
  loop.After(sim::Time{0}, [] { throw std::runtime_error("timer"); });
  EXPECT_THAT([&] { loop.Run({}, {}); }, testing::ThrowsMessage<std::runtime_error>("timer"));
  EXPECT_THAT([&] { loop.Run({}, [] { throw std::runtime_error("tick"); }); },
              testing::ThrowsMessage<std::runtime_error>("tick"));
}

TEST(Loop, StopsFromAnyThreadAlsoBeforeItRuns) {
  ComputePool pool(1);
  Loop loop(pool);
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds(30));
    loop.Stop();
  });
  loop.Run({}, {});
  other.join();
  loop.Run({}, {});  // at once
  int ran = 0;
  loop.Call([&] { ++ran; });
  loop.RunUntil([&] { return ran == 1; }, Seconds(10));  // closing is still possible
  EXPECT_EQ(ran, 1);
}

TEST(Loop, WorkMayEndAfterTheLoopHas) {
  ComputePool pool(1);
  std::promise<void> go;
  std::atomic<bool> done = false;
  {
    Loop loop(pool);
    loop.Compute([&] { go.get_future().wait(); }, sim::Time{0}, [&] { done = true; });
  }
  go.set_value();
  pool.Submit(sim::Time{0}, [] {}).wait();
  EXPECT_FALSE(done);
}

TEST(Loop, TicksTenTimesASecond) {
  ComputePool pool(1);
  Loop loop(pool);
  int ticks = 0;
  double passed = 0;
  loop.OnTick([&](double s) { passed += s; });
  loop.Run([&] { return ticks == 3; }, [&] { ++ticks; });
  EXPECT_GE(passed, 0.2);
}

}  // namespace
}  // namespace spes::trainer
