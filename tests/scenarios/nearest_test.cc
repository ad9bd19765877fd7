#include "scenarios/nearest.h"

#include <gtest/gtest.h>

namespace spes::scenarios {
namespace {

TEST(EditDistance, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(EditDistance("", ""), 0);
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("sync", "sync"), 0);
  EXPECT_EQ(EditDistance("sinc", "sync"), 1);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
  EXPECT_EQ(EditDistance("evrey", "every"), 1);  // one swap
  EXPECT_EQ(EditDistance("abc", "ca"), 3);       // a swapped pair is not edited again
  EXPECT_EQ(EditDistance("flaw", "lawn"), EditDistance("lawn", "flaw"));
}

TEST(Suggestion, NamesTheNearestWhenItIsNear) {
  EXPECT_EQ(Suggestion("sinc", {"seed", "sync", "nodes"}), "; did you mean 'sync'?");
  EXPECT_EQ(Suggestion("step", {"seed", "step_time"}), "; did you mean 'step_time'?");
  EXPECT_EQ(Suggestion("xyzzy", {"seed", "sync", "nodes"}), "; there is seed, sync and nodes");
  EXPECT_EQ(Suggestion("xyzzy", {"seed"}), "; there is seed");
  EXPECT_EQ(Suggestion("xyzzy", {}), "");
  EXPECT_EQ(Suggestion("q", std::vector<std::string>(14, "long_name")), "");
}

}  // namespace
}  // namespace spes::scenarios
