// Floating-point values as integers: comparisons that know NaN, and NaN without a history.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace spes::trainer {

static_assert(std::endian::native == std::endian::little, "codes are little-endian");

// The signed integer of T's size.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

// |x| as an integer: ordered as magnitudes are, infinity above all finite values and NaN above it.
template <class T>
Bits<T> MagnitudeBits(T x) {
  return std::bit_cast<Bits<T>>(x) & std::numeric_limits<Bits<T>>::max();
}

template <class T>
inline constexpr Bits<T> kInfinityBits = std::bit_cast<Bits<T>>(std::numeric_limits<T>::infinity());

// x, and for every NaN the same one: which NaN comes out of a sum depends on processor and
// compiler.
template <class T>
T OneNaN(T x) {
  return x == x ? x : std::numeric_limits<T>::quiet_NaN();
}

}  // namespace spes::trainer
