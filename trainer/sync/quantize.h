// Values as small integers times a scale for each group of neighbours.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace spes::trainer {

// Levels on each side of zero. 127: a byte for each integer; 7: half a byte, plus 7, the first of
// two in the lower half.
constexpr int kInt8Levels = 127, kInt4Levels = 7;

// Size of the code of `elements` values: a float32 for each group of `group` values, then the
// integers.
std::int64_t QuantizedBytes(int levels, int group, std::int64_t elements);

// The code of `x`. A group's scale is its largest magnitude ÷ levels as float32; a value becomes
// the nearest multiple of it, so |x − decoded| ≤ scale / 2 up to rounding, also where the scale is
// subnormal. A group has the scale 0 when all of it is 0, and NaN when a value is not finite or the
// scale is beyond float32.
template <class T>
std::string Quantize(int levels, int group, std::span<const T> x);

// Writes all of `x`: what Quantize made `code` of, NaN for a group with the scale NaN. Throws
// std::invalid_argument on a text that Quantize does not write for x.size() values.
template <class T>
void Dequantize(int levels, int group, std::string_view code, std::span<T> x);

}  // namespace spes::trainer
