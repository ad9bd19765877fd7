#include "trainer/data/permutation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace spes::trainer {
namespace {

TEST(Permutation, HitsEachElementOnceForEverySize) {
  for (std::int64_t n = 1; n <= 300; ++n) {
    const Permutation order(n, static_cast<std::uint64_t>(n) * 77);
    std::vector<int> hits(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) {
      ASSERT_GE(order[i], 0);
      ASSERT_LT(order[i], n);
      ++hits[static_cast<std::size_t>(order[i])];
    }
    for (const int h : hits) ASSERT_EQ(h, 1) << n;
  }
}

TEST(Permutation, StaysInRangeForBillions) {
  const std::int64_t n = 3'000'000'000'001;
  const Permutation order(n, 5);
  for (std::int64_t i = 0; i < 1000; ++i) {
    ASSERT_GE(order[n - 1 - i], 0);
    ASSERT_LT(order[n - 1 - i], n);
  }
}

TEST(Permutation, KeysGiveDifferentOrdersAndEqualKeysTheSame) {
  const Permutation a(1000, 1), b(1000, 2), again(1000, 1);
  int equal = 0;
  for (int i = 0; i < 1000; ++i) {
    equal += a[i] == b[i];
    ASSERT_EQ(a[i], again[i]);
  }
  EXPECT_LT(equal, 10);  // 1 on average
}

// Over many keys every element comes first equally often, and every pair of elements comes first
// and second: χ² within 5 standard deviations of its mean.
TEST(Permutation, IsUniformOverKeys) {
  const int n = 11, keys = 22000;
  std::vector<int> pairs(n * n);
  for (int key = 0; key < keys; ++key) {
    const Permutation order(n, static_cast<std::uint64_t>(key));
    ++pairs[static_cast<std::size_t>(order[0] * n + order[1])];
  }
  const double expected = keys / (n * (n - 1.0));
  double chi2 = 0;
  for (int a = 0; a < n; ++a) {
    for (int b = 0; b < n; ++b) {
      const int seen = pairs[static_cast<std::size_t>(a * n + b)];
      if (a == b) {
        EXPECT_EQ(seen, 0);
      } else {
        chi2 += (seen - expected) * (seen - expected) / expected;
      }
    }
  }
  const double freedom = n * (n - 1) - 1;
  EXPECT_NEAR(chi2, freedom, 5 * std::sqrt(2 * freedom));
}

}  // namespace
}  // namespace spes::trainer
