#include "analysis/quantities.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "analysis/statistics.h"

namespace spes::analysis {
namespace {

TEST(QuantitiesTest, Durations) {
  EXPECT_EQ(FormatDuration(0), "0 s");
  EXPECT_EQ(FormatDuration(0.00025), "0.25 ms");
  EXPECT_EQ(FormatDuration(0.25), "250 ms");
  EXPECT_EQ(FormatDuration(0.9996), "1.00 s");
  EXPECT_EQ(FormatDuration(9.994), "9.99 s");
  EXPECT_EQ(FormatDuration(45), "45.0 s");
  EXPECT_EQ(FormatDuration(59.97), "1 min 00 s");
  EXPECT_EQ(FormatDuration(125.4), "2 min 05 s");
  EXPECT_EQ(FormatDuration(3599.6), "1 h 00 min");
  EXPECT_EQ(FormatDuration(3 * 3600 + 7 * 60), "3 h 07 min");
  EXPECT_EQ(FormatDuration(98 * 3600), "4 d 02 h");
  EXPECT_EQ(FormatDuration(std::nan("")), "–");
}

TEST(QuantitiesTest, BytesCountsAndShares) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(512), "512 B");
  EXPECT_EQ(FormatBytes(1536), "1.50 KiB");
  EXPECT_EQ(FormatBytes(1024 * 1024 - 1), "1.00 MiB");
  EXPECT_EQ(FormatBytes(12.34 * 1024 * 1024), "12.3 MiB");
  EXPECT_EQ(FormatBytes(640.0 * (1 << 30)), "640 GiB");
  EXPECT_EQ(FormatCount(950), "950");
  EXPECT_EQ(FormatCount(12340), "12.3 k");
  EXPECT_EQ(FormatCount(1.2e6), "1.20 M");
  EXPECT_EQ(FormatPercent(0.40765), "40.8 %");
  EXPECT_EQ(FormatPercent(NAN), "–");
}

TEST(StatisticsTest, SpreadAndShare) {
  EXPECT_EQ(SpreadOf(std::vector<double>{}), Spread{});
  EXPECT_EQ(SpreadOf(std::vector<double>{3, 1, 8}), (Spread{1, 4, 8}));
  EXPECT_EQ(Share(1, 4), 0.25);
  EXPECT_EQ(Share(1, 0), 0);
}

}  // namespace
}  // namespace spes::analysis
