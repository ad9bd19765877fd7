// Whole runs under random faults: `SPES_CHAOS_SEEDS=10000` runs that many seeds,
// `SPES_CHAOS_SEED=17` one of them, with all that happens in it.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

#include "tests/trainer/protocol/chaos_run.h"

namespace spes::trainer {
namespace {

std::uint64_t NumberFromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::stoull(text) : otherwise;
}

void Expect(std::uint64_t seed, const ChaosOutcome& outcome) {
  if (outcome.violations.empty()) return;
  std::string text;
  for (const std::string& line : outcome.violations) text += "  " + line + "\n";
  ADD_FAILURE() << "SPES_CHAOS_SEED=" << seed << "\n" << text;
}

TEST(Chaos, RandomRunsHoldUnderRandomFaults) {
  if (const std::uint64_t seed = NumberFromEnvironment("SPES_CHAOS_SEED", 0)) {
    Expect(seed, RunChaos(seed, &std::cout));
    return;
  }
  const std::uint64_t first = NumberFromEnvironment("SPES_CHAOS_FIRST", 1);
  const std::uint64_t seeds = NumberFromEnvironment("SPES_CHAOS_SEEDS", 500);
  std::map<std::string, int> events;
  int same = 0, failed = 0;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    const ChaosOutcome outcome = RunChaos(seed);
    Expect(seed, outcome);
    for (const auto& [kind, count] : outcome.events) events[kind] += count;
    same += outcome.same_required ? 1 : 0;
    failed += outcome.violations.empty() ? 0 : 1;
    if (failed == 20) break;  // enough to look at
  }
  std::cout << seeds << " seeds from " << first << ", " << failed
            << " failed; the world must be that of the undisturbed run in " << same << "\n";
  for (const auto& [kind, count] : events) std::cout << "  " << count << " " << kind << "\n";
  // Every kind of fault was there.
  if (seeds >= 100) {
    for (const char* kind : {"crash", "slow", "outage", "half_open_up", "half_open_down", "corrupt",
                             "repeat", "reorder", "full_disk", "clock_jump"}) {
      EXPECT_GT(events[std::string("fault/") + kind], 0) << kind;
    }
    EXPECT_GT(same, 0);
  }
}

}  // namespace
}  // namespace spes::trainer
