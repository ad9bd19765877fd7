// Each kind of code by itself: bf16, integers with a scale, top-k, compression.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "tests/trainer/sync/code_samples.h"
#include "trainer/sync/bfloat16.h"
#include "trainer/sync/compress.h"
#include "trainer/sync/quantize.h"
#include "trainer/sync/top_k.h"

namespace spes::trainer {
namespace {

template <class T>
std::vector<T> ThroughBf16(const std::vector<T>& x) {
  std::vector<T> out(x.size());
  DecodeBf16<T>(EncodeBf16<T>(x), out);
  return out;
}

TEST(Bf16, RoundsToNearestAndTiesToEven) {
  const float inf = std::numeric_limits<float>::infinity();
  // 8 bits of significand: steps of 2⁻⁷ from 1 on.
  const std::vector<float> x = {1.0F,         1 + 0x1p-8F,     1 + 3 * 0x1p-8F, 1 + 0x1.01p-8F,
                                -1 - 0x1p-8F, 0x1p-133F,       0x1p-134F,       0x1.8p-134F,
                                0x1.FEp127F,  0x1.FEFFFEp127F, 0x1.FFp127F,     -inf};
  const std::vector<float> rounded = {
      1.0F, 1.0F,      1 + 4 * 0x1p-8F, 1 + 2 * 0x1p-8F, -1.0F, 0x1p-133F,
      0.0F, 0x1p-133F, 0x1.FEp127F,     0x1.FEp127F,     inf,   -inf};
  EXPECT_EQ(ThroughBf16(x), rounded);
  EXPECT_TRUE(std::signbit(ThroughBf16<float>({-0.0F})[0]));
}

TEST(Bf16, EveryNaNStaysNaN) {
  for (const std::uint32_t bits :
       {0x7FC00000U, 0xFFC00000U, 0x7F800001U, 0xFFFFFFFFU, 0x7FFF8000U}) {
    EXPECT_TRUE(std::isnan(ThroughBf16<float>({std::bit_cast<float>(bits)})[0])) << bits;
    const std::string code = EncodeBf16<float>(std::vector<float>{std::bit_cast<float>(bits)});
    EXPECT_EQ(code, std::string("\xC0\x7F"));
  }
}

TEST(Bf16, Float64GoesThroughFloat32) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> x = {1 + 0x1p-8 + 0x1p-40, 1e300, -1e300, 1e-300, inf};
  // The first is a tie after rounding to float32, and would be rounded up before.
  EXPECT_EQ(ThroughBf16(x), (std::vector<double>{1, inf, -inf, 0, inf}));
}

TEST(Bf16, IsTheNearestOfItsNeighbours) {
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const float x = RandomValue<float>(1, i, 100);
    const float y = ThroughBf16<float>({x})[0];
    const auto bits = std::bit_cast<std::uint32_t>(y);
    EXPECT_EQ(bits & 0xFFFFU, 0U);
    for (const std::uint32_t other : {bits + 0x10000U, bits - 0x10000U}) {
      const double distance = std::abs(double{std::bit_cast<float>(other)} - x);
      if (!std::isfinite(distance)) continue;
      EXPECT_LE(std::abs(double{y} - x), distance) << x;
    }
  }
}

template <class T>
std::vector<T> ThroughIntegers(int levels, int group, const std::vector<T>& x) {
  std::vector<T> out(x.size(), T{77});
  const std::string code = Quantize<T>(levels, group, x);
  EXPECT_EQ(static_cast<std::int64_t>(code.size()),
            QuantizedBytes(levels, group, static_cast<std::int64_t>(x.size())));
  Dequantize<T>(levels, group, code, out);
  return out;
}

// Every |x − decoded| ≤ scale / 2 with scale the group's largest magnitude ÷ levels, which in the
// subnormal range is rounded up to a multiple of the smallest float32.
template <class T>
void ErrorIsAtMostHalfAStep(int levels, int group, int exponent) {
  std::vector<T> x;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    x.push_back(std::ldexp(RandomValue<T>(Key(levels, group), i, 2), exponent));
  }
  const std::vector<T> decoded = ThroughIntegers(levels, group, x);
  const auto size = static_cast<std::size_t>(group);
  for (std::size_t start = 0; start < x.size(); start += size) {
    const std::size_t end = std::min(start + size, x.size());
    double largest = 0;
    for (std::size_t i = start; i < end; ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(x[i])));
    }
    double scale = largest / levels;
    if (scale < 0x1p-126) scale = std::ceil(scale * 0x1p149) * 0x1p-149;
    for (std::size_t i = start; i < end; ++i) {
      const double error = std::abs(static_cast<double>(x[i]) - static_cast<double>(decoded[i]));
      ASSERT_LE(error, scale / 2 * (1 + 1e-4)) << x[i] << " 2^" << exponent << " / " << levels;
    }
  }
}

TEST(Quantize, ErrorIsAtMostHalfAStepAlsoWhereSubnormal) {
  for (const int levels : {kInt8Levels, kInt4Levels}) {
    for (const int group : {1, 3, 128, 5000}) {
      for (const int exponent : {0, 10, -120, -125, -130, -140, -146, 125}) {
        ErrorIsAtMostHalfAStep<float>(levels, group, exponent);
        ErrorIsAtMostHalfAStep<double>(levels, group, exponent);
      }
      for (const int exponent : {-200, -1000, 124}) {
        ErrorIsAtMostHalfAStep<double>(levels, group, exponent);
      }
    }
  }
}

TEST(Quantize, TheLargestFiniteValuesStayFinite) {
  for (const int levels : {kInt8Levels, kInt4Levels}) {
    for (int i = 0; i < 300; ++i) {
      float largest = std::numeric_limits<float>::max();
      for (int k = 0; k < i; ++k) largest = std::nextafter(largest, 0.0F);
      const float y = ThroughIntegers<float>(levels, 4, {largest, -largest, 1, 0})[0];
      EXPECT_NEAR(y / largest, 1, 1e-6);
    }
  }
}

TEST(Quantize, GroupsStandAlone) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  for (const int levels : {kInt8Levels, kInt4Levels}) {
    const auto y = ThroughIntegers<float>(
        levels, 3, {0, -0.0F, 0, 1, nan, 2, 7, -7, 0, -inf, 1, 2, static_cast<float>(levels), 1});
    for (const std::size_t i : {0, 1, 2, 8}) EXPECT_EQ(y[i], 0);
    for (const std::size_t i : {3, 4, 5, 9, 10, 11}) EXPECT_TRUE(std::isnan(y[i]));
    EXPECT_FLOAT_EQ(y[6], 7);
    EXPECT_FLOAT_EQ(y[7], -7);
    EXPECT_EQ(y[12], levels);
    EXPECT_EQ(y[13], 1);
  }
}

TEST(Quantize, BeyondTheScalesRangeIsNotFinite) {
  for (const double y : ThroughIntegers<double>(kInt8Levels, 2, {1e300, 1})) {
    EXPECT_TRUE(std::isnan(y));
  }
  EXPECT_NEAR(ThroughIntegers<double>(kInt8Levels, 2, {1e40, 1})[0] / 1e40, 1, 1e-6);
}

TEST(Quantize, LayoutOfFourBits) {
  const std::string code = Quantize<float>(kInt4Levels, 2, std::vector<float>{7, -7, 14});
  ASSERT_EQ(code.size(), 2 * 4 + 2U);
  EXPECT_EQ(code.substr(0, 8), std::string("\0\0\x80\x3F\0\0\0\x40", 8));  // scales 1 and 2
  EXPECT_EQ(code.substr(8), std::string("\x0E\x0E"));                      // 14 | 0 << 4, 14
}

TEST(Quantize, RefusesWhatItDoesNotWrite) {
  std::vector<float> x(3);
  const std::string code8 = Quantize<float>(kInt8Levels, 2, std::vector<float>{7, -7, 14});
  const std::string code4 = Quantize<float>(kInt4Levels, 2, std::vector<float>{7, -7, 14});
  const auto refused = [&](int levels, std::string code, std::size_t at, char byte) {
    code[at] = byte;
    EXPECT_THROW(Dequantize<float>(levels, 2, code, x), std::invalid_argument);
  };
  refused(kInt8Levels, code8, 9, '\x80');       // −128
  refused(kInt8Levels, code8, 3, '\xBF');       // a negative scale
  refused(kInt4Levels, code4, 8, '\xF0');       // 8 of ±7
  refused(kInt4Levels, code4, 8, '\x0F');       //
  refused(kInt4Levels, code4, 9, '\x1E');       // something behind the last value
  refused(kInt4Levels, code4 + '\0', 8, '\0');  // too long
  EXPECT_THROW(Dequantize<float>(kInt4Levels, 2, code4.substr(1), x), std::invalid_argument);
  std::string infinite = code8;
  infinite.replace(0, 4, std::string("\0\0\x80\x7F", 4));
  EXPECT_THROW(Dequantize<float>(kInt8Levels, 2, infinite, x), std::invalid_argument);
}

// All indices in order of magnitude, ties in order of index; the first ones stay.
template <class T>
std::vector<T> SlowTopK(std::int64_t kept, const std::vector<T>& x) {
  const auto size = [&](std::size_t i) {
    return std::isfinite(x[i]) ? std::abs(x[i]) : std::numeric_limits<T>::infinity();
  };
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](auto a, auto b) { return size(a) > size(b); });
  std::vector<T> out(x.size());
  for (std::size_t k = 0; k < static_cast<std::size_t>(kept); ++k) out[order[k]] = x[order[k]];
  return out;
}

template <class T>
void TopKIsExact() {
  for (std::uint64_t key = 0; key < 400; ++key) {
    const auto n = static_cast<std::int64_t>(1 + Key(key, 1) % 300);
    const auto kept = static_cast<std::int64_t>(1 + Key(key, 2) % static_cast<std::uint64_t>(n));
    std::vector<T> x;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::uint64_t draw = Key(key, 3, i);
      const T few[] = {0, 1, -1, T{0.5}, -0.0, std::numeric_limits<T>::infinity()};
      x.push_back(key % 2 == 0 ? RandomValue<T>(key, static_cast<std::uint64_t>(i), 1)
                               : few[draw % (key % 3 == 0 ? 6 : 5)]);
    }
    const std::string code = EncodeTopK<T>(kept, x);
    EXPECT_LE(static_cast<std::int64_t>(code.size()), LargestTopK(kept, n, sizeof(T)));
    std::vector<T> decoded(x.size(), T{9});
    DecodeTopK<T>(kept, code, decoded);
    EXPECT_EQ(decoded, SlowTopK(kept, x)) << key;
  }
}

TEST(TopK, KeepsExactlyTheLargestAndTheFirstOfEqualOnes) {
  TopKIsExact<float>();
  TopKIsExact<double>();
}

TEST(TopK, NaNIsAsLargeAsInfinity) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> x = {1, inf, -nan, 3e38F}, y(4);
  DecodeTopK<float>(1, EncodeTopK<float>(1, x), y);
  EXPECT_EQ(y, (std::vector<float>{0, inf, 0, 0}));
  DecodeTopK<float>(2, EncodeTopK<float>(2, x), y);
  EXPECT_TRUE(std::isnan(y[2]));
  EXPECT_EQ(y[3], 0);
}

TEST(TopK, TakesTheShorterOfGapsAndBitmapAndSendsNoZeros) {
  std::vector<float> x(1000);
  EXPECT_EQ(EncodeTopK<float>(500, x).size(), 2U);
  x[999] = 1;
  EXPECT_EQ(EncodeTopK<float>(500, x), std::string("\0\1\xE7\7\0\0\x80\x3F", 8));
  for (float& v : x) v = 1;
  const std::string all = EncodeTopK<float>(1000, x);
  EXPECT_EQ(all.size(), 1 + 2 + 125 + 4000U);
  EXPECT_EQ(all[0], 1);
  EXPECT_EQ(EncodeTopK<float>(100, x).size(), 1 + 1 + 100 + 400U);  // the first 100: gaps of 0
}

TEST(TopK, KeepsTheNearestNumberAndAtLeastOne) {
  EXPECT_EQ(KeptElements(0.01, 1000), 10);
  EXPECT_EQ(KeptElements(0.07, 100), 7);
  EXPECT_EQ(KeptElements(1e-9, 1000), 1);
  EXPECT_EQ(KeptElements(1, 1000), 1000);
  EXPECT_EQ(KeptElements(0.5, 0), 0);
}

TEST(TopK, RefusesWhatItDoesNotWrite) {
  std::vector<float> x(10);
  const std::string one("\0\0\x80\x3F", 4);
  const auto refused = [&](const std::string& code) {
    EXPECT_THROW(DecodeTopK<float>(3, code, x), std::invalid_argument) << code;
  };
  using namespace std::string_literals;
  EXPECT_NO_THROW(DecodeTopK<float>(3, "\0\1\x09"s + one, x));
  EXPECT_EQ(x[9], 1);
  EXPECT_NO_THROW(DecodeTopK<float>(3, "\1\1\0\2"s + one, x));
  refused("");
  refused("\2\1\0"s + one);                              // no such form
  refused("\0\1\x0A"s + one);                            // index 10 of 10
  refused("\0\2\x09\0"s + one + one);                    // and the next
  refused("\0\4\0\0\0\0"s + one + one + one + one);      // more than kept
  refused("\0\1\x09"s + one.substr(1));                  // too short
  refused("\0\1\x09\0"s + one);                          // too long
  refused("\0\1"s);                                      // no index
  refused("\1\1\0\4"s + one);                            // bit 10 of 10
  refused("\1\1\0\3"s + one);                            // two bits for one value
  refused("\1\2\0\1"s + one + one);                      // one bit for two values
  refused("\0\x80\x80\x80\x80\x80\x80\x80\x80\x80\1"s);  // a number without an end
}

TEST(Compress, GivesBackWhatItWasGiven) {
  for (const int width : {1, 2, 4, 8}) {
    for (const std::size_t numbers : {0, 1, 7, 1000}) {
      std::string text;
      for (std::size_t i = 0; i < numbers * static_cast<std::size_t>(width); ++i) {
        text.push_back(static_cast<char>(Key(1, i) % 5));
      }
      for (const int level : {1, 19}) {
        const std::string code = Compress(level, width, text);
        EXPECT_LE(code.size(), text.size() + 1);
        EXPECT_EQ(Decompress(width, static_cast<std::int64_t>(text.size()), code), text);
      }
    }
  }
}

TEST(Compress, RefusesWhatItDoesNotWrite) {
  const auto refused = [](int width, std::int64_t largest, const std::string& code) {
    EXPECT_THROW(Decompress(width, largest, code), std::invalid_argument);
  };
  const std::string zeros(1 << 20, '\0'), code = Compress(3, 1, zeros);
  EXPECT_LT(code.size(), 200U);
  EXPECT_EQ(Decompress(1, 1 << 20, code), zeros);
  refused(1, (1 << 20) - 1, code);
  refused(1, 1 << 20, "");
  refused(1, 1 << 20, "\2" + code.substr(1));
  refused(1, 1 << 20, code.substr(0, code.size() - 1));
  refused(1, 1 << 20, code + code.substr(1));
  refused(1, 1 << 20, code + std::string("\x50\x2A\x4D\x18\0\0\0\0", 8));  // a frame to be skipped
  refused(4, 1 << 20, Compress(3, 1, zeros.substr(1)));                    // no whole numbers
  refused(1, 9, std::string(11, '\0'));                                    // as it is, too long
}

}  // namespace
}  // namespace spes::trainer
