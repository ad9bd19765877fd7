// The upper half of a float32.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace spes::trainer {

// Two bytes a value, rounded to nearest, ties to even; beyond the largest finite value infinity,
// every NaN the same NaN. A float64 is rounded to float32 first.
template <class T>
std::string EncodeBf16(std::span<const T> x);

// Writes all of `x`. Throws std::invalid_argument unless `code` has two bytes for each value.
template <class T>
void DecodeBf16(std::string_view code, std::span<T> x);

}  // namespace spes::trainer
