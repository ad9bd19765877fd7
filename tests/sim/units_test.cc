#include "sim/units.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace spes::sim {
namespace {

using namespace std::chrono_literals;

TEST(Units, DurationsAreRead) {
  EXPECT_EQ(ParseDuration("40 ms"), 40ms);
  EXPECT_EQ(ParseDuration("40ms"), 40ms);
  EXPECT_EQ(ParseDuration("  2.5 min "), 150s);
  EXPECT_EQ(ParseDuration("7 ns"), 7ns);
  EXPECT_EQ(ParseDuration("1.5 us"), 1500ns);
  EXPECT_EQ(ParseDuration("1e3 s"), 1000s);
  EXPECT_EQ(ParseDuration("2 h"), 2h);
  EXPECT_EQ(ParseDuration("1 d"), 24h);
  EXPECT_EQ(ParseDuration("0"), 0s);
  EXPECT_EQ(ParseDuration("9223372036854775807 ns"), Time::max());
}

TEST(Units, RatesAndSizesAreRead) {
  EXPECT_EQ(ParseBitRate("100 Mbps"), 100e6);
  EXPECT_EQ(ParseBitRate("0.79 Gbps"), 0.79e9);
  EXPECT_EQ(ParseBitRate("9.6kbps"), 9600);
  EXPECT_EQ(ParseBitRate("1 bps"), 1);
  EXPECT_EQ(ParseByteSize("1 kB"), 1000);
  EXPECT_EQ(ParseByteSize("1 KiB"), 1024);
  EXPECT_EQ(ParseByteSize("5 MiB"), 5 << 20);
  EXPECT_EQ(ParseByteSize("2 GiB"), 2LL << 30);
  EXPECT_EQ(ParseByteSize("1.9 GB"), 1'900'000'000);
  EXPECT_EQ(ParseByteSize("3 TB"), 3'000'000'000'000);
  EXPECT_EQ(ParseByteSize("0"), 0);
}

TEST(Units, WhatIsNoQuantityIsRefused) {
  for (const char* text :
       {"40",     "-3 ms",   "+3 ms", "1e400 s", "1e5000 s", "1e10 d", "9223372036854775808 ns",
        "",       " ",       "ms",    "ms 3",    "3 MS",     "3 m",    "3 ms ms",
        "3 ms x", "inf s",   "nan s", "0x10 s",  "1,5 s",    "- 3 ms", "3 Mbps",
        "3 kB",   "1.5.2 s", "0.5"}) {
    EXPECT_FALSE(ParseDuration(text)) << text;
  }
  for (const char* text : {"100", "10 Mb", "10 MBps", "10 mbps", "10 M", "-1 Mbps", "1e400 bps",
                           "10 Mbit/s", "10 ms", "inf bps"}) {
    EXPECT_FALSE(ParseBitRate(text)) << text;
  }
  for (const char* text : {"100", "10 Mb", "10 KB", "-1 MB", "1e30 TB", "9223372036854775808 B",
                           "10 M", "10 mib", "10 Mbps"}) {
    EXPECT_FALSE(ParseByteSize(text)) << text;
  }
}

TEST(Units, TextIsShortAndReadable) {
  EXPECT_EQ(FormatDuration(40ms), "40 ms");
  EXPECT_EQ(FormatDuration(150s), "2.5 min");
  EXPECT_EQ(FormatDuration(151s), "151 s");
  EXPECT_EQ(FormatDuration(1h), "1 h");
  EXPECT_EQ(FormatDuration(500ms), "500 ms");
  EXPECT_EQ(FormatDuration(0s), "0 s");
  EXPECT_EQ(FormatBitRate(100e6), "100 Mbps");
  EXPECT_EQ(FormatBitRate(26.6e6), "26.6 Mbps");
  EXPECT_EQ(FormatBitRate(0.79e9), "790 Mbps");
  EXPECT_EQ(FormatByteSize(1'900'000'000), "1.9 GB");
  EXPECT_EQ(FormatByteSize(2LL << 30), "2 GiB");
  EXPECT_EQ(FormatByteSize(0), "0 B");
}

TEST(Units, TextForPeopleIsRounded) {
  EXPECT_EQ(FormatDuration(Time(123'456'789), 3), "123 ms");
  EXPECT_EQ(FormatDuration(Time(150'400'000'000), 2), "2.5 min");
  EXPECT_EQ(FormatDuration(Time(-1'500'000'000), 2), "-1.5 s");
  EXPECT_EQ(FormatByteSize(1'912'345'678, 2), "1.9 GB");
  EXPECT_EQ(FormatByteSize(2LL << 30, 3), "2.15 GB");
  EXPECT_EQ(FormatBitRate(94'929'123.4, 3), "94.9 Mbps");
  EXPECT_EQ(FormatBitRate(0.5, 3), "0.5 bps");
}

TEST(Units, EveryValueSurvivesItsText) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const auto bits = static_cast<int>(random() % 63);
    const auto whole = static_cast<std::int64_t>(random() >> 1 >> bits);
    EXPECT_EQ(ParseDuration(FormatDuration(Time(whole))), Time(whole));
    EXPECT_EQ(ParseByteSize(FormatByteSize(whole)), whole);
    const double rate = static_cast<double>(whole) / 1024;
    EXPECT_EQ(ParseBitRate(FormatBitRate(rate)), rate);
  }
  const auto most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(ParseByteSize(FormatByteSize(most)), most);
}

TEST(Units, SecondsAreExactToTheNanosecond) {
  EXPECT_EQ(FromSeconds(0.1), 100ms);
  EXPECT_EQ(FromSeconds(1e-9), 1ns);
  EXPECT_EQ(FromSeconds(ToSeconds(Time(1'234'567'891'234))), Time(1'234'567'891'234));
  EXPECT_DOUBLE_EQ(ToSeconds(2500ms), 2.5);
}

}  // namespace
}  // namespace spes::sim
