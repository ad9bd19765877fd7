#include "trainer/sync/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>

#include "trainer/sync/float_bits.h"

namespace spes::trainer {

namespace {

std::size_t Groups(int group, std::size_t elements) {
  const auto size = static_cast<std::size_t>(group);
  return (elements + size - 1) / size;
}

// NaN when a value is not finite.
template <class T>
T LargestMagnitude(std::span<const T> x) {
  Bits<T> largest = 0;
  for (const T v : x) largest = std::max(largest, MagnitudeBits(v));
  return largest < kInfinityBits<T> ? std::bit_cast<T>(largest)
                                    : std::numeric_limits<T>::quiet_NaN();
}

template <class T>
float Scale(T largest, int levels) {
  const double exact = static_cast<double>(largest) / levels;
  if (!(exact <= FLT_MAX)) return std::numeric_limits<float>::quiet_NaN();
  auto scale = static_cast<float>(exact);
  // Subnormal scales are coarse: one rounded down would not reach the largest value.
  if (scale < FLT_MIN && scale < exact) scale = std::nextafter(scale, 1.0F);
  // One rounded up must not take the largest value beyond what T holds.
  if (static_cast<double>(scale) * levels > static_cast<double>(std::numeric_limits<T>::max())) {
    scale = std::nextafter(scale, 0.0F);
  }
  return scale;
}

template <class T>
void QuantizeGroup(std::span<const T> x, float scale, std::int8_t* q) {
  if (!(scale > 0)) {
    std::fill_n(q, x.size(), std::int8_t{0});
    return;
  }
  const auto divisor = static_cast<T>(scale);
  for (std::size_t i = 0; i < x.size(); ++i) {
    q[i] = static_cast<std::int8_t>(static_cast<std::int32_t>(std::rint(x[i] / divisor)));
  }
}

// Two integers to a byte; the last one of an odd number is alone.
void Pack(const std::int8_t* q, std::size_t n, unsigned char* bytes) {
  for (std::size_t i = 0; i < n / 2; ++i) {
    bytes[i] = static_cast<unsigned char>((q[2 * i] + 7) | ((q[2 * i + 1] + 7) << 4));
  }
  if (n % 2 != 0) bytes[n / 2] = static_cast<unsigned char>(q[n - 1] + 7);
}

// A loop without an exit, which the compiler turns into vectors.
bool NoneBelowRange(const std::int8_t* q, std::size_t n) {
  std::int8_t least = 0;
  for (std::size_t i = 0; i < n; ++i) least = std::min(least, q[i]);
  return least >= -127;
}

// Gives false where a half byte is none of 0 to 14.
bool Unpack(const unsigned char* bytes, std::size_t n, std::int8_t* q) {
  unsigned char bad = 0;
  for (std::size_t i = 0; i < n / 2; ++i) {
    const unsigned char low = bytes[i] & 15, high = bytes[i] >> 4;
    bad |= static_cast<unsigned char>((low == 15) | (high == 15));
    q[2 * i] = static_cast<std::int8_t>(low - 7);
    q[2 * i + 1] = static_cast<std::int8_t>(high - 7);
  }
  if (n % 2 != 0) {
    bad |= static_cast<unsigned char>(bytes[n / 2] > 14);
    q[n - 1] = static_cast<std::int8_t>(bytes[n / 2] - 7);
  }
  return bad == 0;
}

template <class T>
void DequantizeGroup(const std::int8_t* q, float scale, std::span<T> x) {
  if (std::isnan(scale)) {
    std::ranges::fill(x, std::numeric_limits<T>::quiet_NaN());
    return;
  }
  const auto factor = static_cast<T>(scale);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(q[i]) * factor;
}

[[noreturn]] void Refuse(const std::string& what) {
  throw std::invalid_argument("a block's quantised code " + what);
}

}  // namespace

std::int64_t QuantizedBytes(int levels, int group, std::int64_t elements) {
  const auto groups = static_cast<std::int64_t>(Groups(group, static_cast<std::size_t>(elements)));
  return groups * 4 + (levels == kInt4Levels ? (elements + 1) / 2 : elements);
}

template <class T>
std::string Quantize(int levels, int group, std::span<const T> x) {
  const std::size_t n = x.size(), size = static_cast<std::size_t>(group);
  std::string code(
      static_cast<std::size_t>(QuantizedBytes(levels, group, static_cast<std::int64_t>(n))), '\0');
  char* scales = code.data();
  char* integers = scales + Groups(group, n) * sizeof(float);
  const bool packed = levels == kInt4Levels;
  const auto unpacked = std::make_unique_for_overwrite<std::int8_t[]>(packed ? n : 0);
  std::int8_t* q = packed ? unpacked.get() : reinterpret_cast<std::int8_t*>(integers);
  for (std::size_t i = 0; i < n; i += size, scales += sizeof(float)) {
    const std::span<const T> values = x.subspan(i, std::min(size, n - i));
    const float scale = Scale(LargestMagnitude(values), levels);
    std::memcpy(scales, &scale, sizeof(float));
    QuantizeGroup(values, scale, q + i);
  }
  if (packed) Pack(q, n, reinterpret_cast<unsigned char*>(integers));
  return code;
}

template <class T>
void Dequantize(int levels, int group, std::string_view code, std::span<T> x) {
  const std::size_t n = x.size(), size = static_cast<std::size_t>(group);
  const std::int64_t wanted = QuantizedBytes(levels, group, static_cast<std::int64_t>(n));
  if (static_cast<std::int64_t>(code.size()) != wanted) {
    Refuse(fmt::format("has {} bytes; {} values take {}", code.size(), n, wanted));
  }
  const char* scales = code.data();
  const char* integers = scales + Groups(group, n) * sizeof(float);
  const bool packed = levels == kInt4Levels;
  const auto unpacked = std::make_unique_for_overwrite<std::int8_t[]>(packed ? n : 0);
  const auto* q = packed ? unpacked.get() : reinterpret_cast<const std::int8_t*>(integers);
  const bool in_range =
      packed ? Unpack(reinterpret_cast<const unsigned char*>(integers), n, unpacked.get())
             : NoneBelowRange(q, n);
  if (!in_range) Refuse(fmt::format("has a value beyond {} levels", levels));
  for (std::size_t i = 0; i < n; i += size, scales += sizeof(float)) {
    float scale;
    std::memcpy(&scale, scales, sizeof(float));
    if (std::signbit(scale) || std::isinf(scale)) Refuse("has a scale below 0 or infinite");
    DequantizeGroup(q + i, scale, x.subspan(i, std::min(size, n - i)));
  }
}

template std::string Quantize<float>(int, int, std::span<const float>);
template std::string Quantize<double>(int, int, std::span<const double>);
template void Dequantize<float>(int, int, std::string_view, std::span<float>);
template void Dequantize<double>(int, int, std::string_view, std::span<double>);

}  // namespace spes::trainer
