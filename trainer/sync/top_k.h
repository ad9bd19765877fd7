// The elements of largest magnitude and where they are.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace spes::trainer {

// How many of `elements` are kept: the share `keep` of them to the nearest, at least one.
std::int64_t KeptElements(double keep, std::int64_t elements);

// The largest size of a code of `kept` of `elements` values.
std::int64_t LargestTopK(std::int64_t kept, std::int64_t elements, std::int64_t element_bytes);

// The code of the `kept` values of largest magnitude, fewer where fewer are not 0. Of equal ones
// those with lower indices; all values that are not finite count as equal and largest. Layout: how
// the indices are written (a byte), how many there are, the indices, the values.
template <class T>
std::string EncodeTopK(std::int64_t kept, std::span<const T> x);

// Writes all of `x`: what EncodeTopK kept, and 0 elsewhere. Throws std::invalid_argument on a text
// that does not describe at most `kept` of x.size() values.
template <class T>
void DecodeTopK(std::int64_t kept, std::string_view code, std::span<T> x);

}  // namespace spes::trainer
