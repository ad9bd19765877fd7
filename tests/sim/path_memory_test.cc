#include "sim/path_memory.h"

#include <gtest/gtest.h>

namespace spes::sim {
namespace {

using namespace std::chrono_literals;

constexpr double kInitial = 14'480;
const PathMemory kMemory{.window = 400'000, .threshold = 100'000, .end = 10s, .timeout = 250ms};

TEST(AfterIdle, WithinATimeOutNothingIsForgotten) {
  const WarmStart start = AfterIdle(kMemory, 10s + 250ms, kInitial);
  EXPECT_EQ(start.window, 400'000);
  EXPECT_EQ(start.threshold, 100'000);
}

TEST(AfterIdle, TheWindowHalvesWithEachTimeOut) {
  for (const auto& [idle, window] :
       {std::pair{251ms, 200'000.0}, {501ms, 100'000.0}, {751ms, 50'000.0}, {60'000ms, kInitial}}) {
    const WarmStart start = AfterIdle(kMemory, 10s + idle, kInitial);
    EXPECT_EQ(start.window, window) << idle.count();
    EXPECT_EQ(start.threshold, 300'000);
  }
}

TEST(AfterIdle, AThresholdIsNeverLowered) {
  PathMemory memory = kMemory;
  memory.threshold = 350'000;
  EXPECT_EQ(AfterIdle(memory, 20s, kInitial).threshold, 350'000);
  memory.threshold = PathMemory::kNone;  // no slow start has ended yet: none ends the next
  EXPECT_EQ(AfterIdle(memory, 20s, kInitial).threshold, PathMemory::kNone);
}

TEST(AfterIdle, AWindowBelowTheInitialOneStays) {
  PathMemory memory = kMemory;
  memory.window = 2896;
  EXPECT_EQ(AfterIdle(memory, 20s, kInitial).window, 2896);
}

}  // namespace
}  // namespace spes::sim
