// Processes that are killed and machines that lose power, at any moment of writing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/analysis/scratch.h"
#include "tests/trainer/checkpoint/power_cut_files.h"
#include "tests/trainer/checkpoint/stores.h"
#include "tests/trainer/data/temporary_folder.h"

namespace spes::trainer {
namespace {

class Interruption : public StoreTest {
 protected:
  TemporaryFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(, Interruption, kStoreKinds, NameOf);

// What a run writes, forward and back, and what may be the newest while each is being written.
struct Step {
  RoundEntry entry;
  std::vector<RoundEntry> meanwhile;
};
const std::vector<Step>& Steps() {
  static const std::vector<Step> steps = {
      {{1, 1}, {}},
      {{2, 2}, {{1, 1}}},
      {{3, 3}, {{2, 2}}},
      {{3, 4}, {{3, 3}}},  // again
      {{4, 5}, {{3, 4}}},
      {{3, 6}, {{4, 5}, {3, 4}}},  // back
      {{4, 7}, {{3, 6}}},
      {{5, 8}, {{4, 7}}},
      // Back to before all that is there: at last there is nothing. What has gone to save room may
      // still come back: {3, 6}.
      {{1, 9}, {{5, 8}, {4, 7}, {3, 6}}},
      {{2, 10}, {{1, 9}}}};
  return steps;
}

TEST_P(Interruption, PowerCutsLeaveTheOldStateOrTheNewOne) {
  std::mt19937 random(5);
  int cuts = 0, nothing = 0;
  bool reached = true;
  for (int call = 0; reached; ++call) {
    PowerCutFiles files;
    const std::string at = folder_.Path("run" + std::to_string(call));
    std::filesystem::create_directory(at);
    const auto store = GetParam().open(at, files, 3);
    files.cut_at = files.calls + call;
    std::size_t done = 0;
    try {
      for (; done < Steps().size(); ++done) store->Write(Steps()[done].entry);
    } catch (const std::runtime_error&) {
    }
    reached = files.calls > files.cut_at;
    std::vector<RoundEntry> allowed;
    if (done > 0) allowed.push_back(Steps()[done - 1].entry);
    if (done < Steps().size()) {
      allowed.insert(allowed.end(), Steps()[done].meanwhile.begin(), Steps()[done].meanwhile.end());
      allowed.push_back(Steps()[done].entry);
    }
    for (int i = 0; i < 10; ++i) {
      SCOPED_TRACE("call " + std::to_string(call) + ", image " + std::to_string(i));
      const std::string left = folder_.Path("left");
      std::filesystem::remove_all(left);
      files.LeaveIn(left, random);
      UnsyncedFiles quick;
      const auto after = GetParam().open(left, quick, 3);
      const std::optional<RoundEntry> newest = after->Newest();
      ++cuts;
      if (newest) {
        EXPECT_THAT(allowed, testing::Contains(*newest));
      } else {
        ++nothing;
        EXPECT_TRUE(done == 0 || Steps()[done].entry.round == 1) << done;
      }
      // No state is of a future of which an earlier one does not know: tags count what was written.
      std::vector<std::int64_t> tags;
      for (const std::int32_t round : after->Rounds()) tags.push_back(after->Read(round).tag);
      EXPECT_TRUE(std::ranges::is_sorted(tags, std::greater<>()))
          << testing::PrintToString(after->Rounds()) << testing::PrintToString(tags);
      // What is left can be gone on with.
      after->Write({9, 99});
      EXPECT_EQ(after->Newest(), (RoundEntry{9, 99}));
    }
  }
  EXPECT_GT(cuts, 300);
  EXPECT_GT(nothing, 5);
}

TEST_P(Interruption, AKilledProcessLeavesTheLastRoundThatItReportedOrTheNext) {
  std::mt19937 random(1);
  const std::string at = folder_.Path("s");
  std::int32_t newest_round = 0;
  std::size_t there = 0;
  // On a busy machine a child may get nowhere before it is killed.
  for (int kills = 0; kills < 30 || (newest_round <= 5 && kills < 1000); ++kills) {
    SCOPED_TRACE(kills);
    analysis::Child child([&](auto report) {
      const auto store = GetParam().open(at, FileSystem::Real(), 3000);
      for (std::int32_t round = newest_round + 1;; ++round) {
        store->Write({round, kills});
        report(round);
      }
      return 0;
    });
    std::int32_t reported = newest_round;
    for (auto n = random() % 3; n > 0; --n) reported = std::max(reported, child.Receive());
    usleep(random() % 8000);
    child.Kill();
    for (int round = child.Receive(); round > 0; round = child.Receive()) reported = round;

    const auto store = GetParam().open(at, FileSystem::Real(), 3000);
    const std::optional<RoundEntry> newest = store->Newest();
    ASSERT_TRUE(newest || reported == 0);
    if (!newest) continue;
    EXPECT_GE(newest->round, reported);
    EXPECT_LE(newest->round, reported + 1);
    // One that is killed before it clears up leaves one more; whoever has reported has cleared up.
    EXPECT_LE(store->Rounds().size(), reported > newest_round ? 3 : there + 1);
    there = store->Rounds().size();
    newest_round = newest->round;
  }
  EXPECT_GT(newest_round, 5);
}

}  // namespace
}  // namespace spes::trainer
