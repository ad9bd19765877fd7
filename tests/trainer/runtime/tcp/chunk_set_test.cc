#include "trainer/runtime/tcp/chunk_set.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace spes::trainer {
namespace {

TEST(ChunkSet, IsASetOfChunks) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    ChunkSet set;
    std::set<std::uint32_t> expected;
    for (int i = 0; i < 30; ++i) {
      const auto first = static_cast<std::uint32_t>(random() % 60);
      const auto end = first + 1 + static_cast<std::uint32_t>(random() % 8);
      std::vector<std::uint32_t> added, missing;
      for (std::uint32_t chunk = first; chunk < end; ++chunk) {
        if (expected.insert(chunk).second) missing.push_back(chunk);
      }
      set.Add({first, end}, [&](std::uint32_t chunk) { added.push_back(chunk); });
      ASSERT_EQ(added, missing);
      std::set<std::uint32_t> all;
      std::uint32_t last = 0;
      for (const ChunkRange range : set.Ranges(kMaxRanges)) {
        ASSERT_TRUE(all.empty() || range.first > last) << "touches the one before";
        ASSERT_LT(range.first, range.end);
        for (std::uint32_t chunk = range.first; chunk < range.end; ++chunk) all.insert(chunk);
        last = range.end;
      }
      ASSERT_EQ(all, expected);
    }
    EXPECT_EQ(set.Ranges(2).size(), std::min<std::size_t>(2, set.Ranges(kMaxRanges).size()));
  }
}

}  // namespace
}  // namespace spes::trainer
