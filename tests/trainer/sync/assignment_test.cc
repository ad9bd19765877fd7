#include "trainer/sync/assignment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <stdexcept>

namespace spes::trainer {
namespace {

double Cost(const std::vector<double>& cost, const std::vector<int>& columns) {
  double sum = 0;
  for (std::size_t r = 0; r < columns.size(); ++r) {
    sum += cost[r * columns.size() + static_cast<std::size_t>(columns[r])];
  }
  return sum;
}

double LowestCost(const std::vector<double>& cost, int n) {
  std::vector<int> columns(static_cast<std::size_t>(n));
  std::iota(columns.begin(), columns.end(), 0);
  double lowest = Cost(cost, columns);
  while (std::next_permutation(columns.begin(), columns.end())) {
    lowest = std::min(lowest, Cost(cost, columns));
  }
  return lowest;
}

bool IsPermutation(std::vector<int> columns) {
  std::sort(columns.begin(), columns.end());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] != static_cast<int>(i)) return false;
  }
  return true;
}

TEST(Assignment, IsAsCheapAsTheBestOfAllPermutations) {
  std::mt19937 random(1);
  for (int n = 0; n <= 7; ++n) {
    for (int repeat = 0; repeat < 40; ++repeat) {
      std::vector<double> cost(static_cast<std::size_t>(n * n));
      // Every second time whole numbers of a small range, so that there are ties.
      for (double& c : cost) {
        c = repeat % 2 == 0 ? static_cast<double>(random()) / 4e9 - 0.5
                            : static_cast<double>(random() % 4) - 1;
      }
      const std::vector<int> columns = MinimalAssignment(cost, n);
      ASSERT_TRUE(IsPermutation(columns));
      ASSERT_NEAR(Cost(cost, columns), LowestCost(cost, n), 1e-12) << n << " rows";
    }
  }
}

TEST(Assignment, FindsAHiddenPermutationOfManyRows) {
  constexpr int n = 200;
  std::vector<int> hidden(n);
  std::iota(hidden.begin(), hidden.end(), 0);
  std::mt19937 random(2);
  std::shuffle(hidden.begin(), hidden.end(), random);
  std::vector<double> cost(std::size_t{n} * n);
  for (double& c : cost) c = static_cast<double>(random()) / 4.3e9;
  for (std::size_t r = 0; r < n; ++r) cost[r * n + static_cast<std::size_t>(hidden[r])] = -1;
  EXPECT_EQ(MinimalAssignment(cost, n), hidden);
}

TEST(Assignment, EqualCostsGiveTheSameAnswerEachTime) {
  const std::vector<double> cost(25, 3.0);
  const std::vector<int> columns = MinimalAssignment(cost, 5);
  EXPECT_TRUE(IsPermutation(columns));
  EXPECT_EQ(MinimalAssignment(cost, 5), columns);
}

TEST(Assignment, ASizeThatDoesNotFitIsRefused) {
  EXPECT_THROW(MinimalAssignment({1, 2, 3}, 2), std::invalid_argument);
  EXPECT_THROW(MinimalAssignment({}, -1), std::invalid_argument);
}

}  // namespace
}  // namespace spes::trainer
