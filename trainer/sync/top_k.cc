#include "trainer/sync/top_k.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <vector>

#include "trainer/sync/float_bits.h"

namespace spes::trainer {

namespace {

// How indices are written.
constexpr char kGaps = 0;    // to each the number of elements left out before it, as a varint
constexpr char kBitmap = 1;  // a bit for each element, from the lowest of the first byte

[[noreturn]] void Refuse(const std::string& what) {
  throw std::invalid_argument("a block's top-k code " + what);
}

// Seven bits a byte, the lowest first; the eighth says that more follow.
void AppendVarint(std::uint64_t value, std::string* out) {
  for (; value >= 128; value >>= 7) out->push_back(static_cast<char>(value | 128));
  out->push_back(static_cast<char>(value));
}

std::int64_t VarintBytes(std::int64_t value) {
  std::int64_t bytes = 1;
  for (; value >= 128; value >>= 7) ++bytes;
  return bytes;
}

// Takes a number of at most `largest` from the front of `text`.
std::uint64_t TakeVarint(std::uint64_t largest, std::string_view* text) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 63; shift += 7) {
    if (text->empty()) Refuse("ends within a number");
    const auto byte = static_cast<unsigned char>(text->front());
    text->remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 127) << shift;
    if (byte < 128) {
      if (value > largest) Refuse(fmt::format("has {} where at most {} may be", value, largest));
      return value;
    }
  }
  Refuse("has a number of more than nine bytes");
}

// Order of magnitude; what is not finite is equal.
template <class T>
Bits<T> SelectionKey(T x) {
  return std::min(MagnitudeBits(x), kInfinityBits<T>);
}

// The `rank`th largest key (from 1). Counts keys by their upper bits first, so that only those of
// one bucket are put in order.
template <class T>
Bits<T> LargestKey(std::int64_t rank, std::span<const T> x) {
  constexpr int bits = 12, shift = 8 * sizeof(T) - 1 - bits;
  std::vector<std::int64_t> count(std::size_t{1} << bits);
  for (const T v : x) ++count[static_cast<std::size_t>(SelectionKey(v) >> shift)];
  Bits<T> bucket = (Bits<T>{1} << bits) - 1;
  for (; rank > count[static_cast<std::size_t>(bucket)]; --bucket) {
    rank -= count[static_cast<std::size_t>(bucket)];
  }
  std::vector<Bits<T>> keys;
  keys.reserve(static_cast<std::size_t>(count[static_cast<std::size_t>(bucket)]));
  for (const T v : x) {
    if (SelectionKey(v) >> shift == bucket) keys.push_back(SelectionKey(v));
  }
  const auto nth = keys.begin() + rank - 1;
  std::nth_element(keys.begin(), nth, keys.end(), std::greater<>());
  return *nth;
}

// Indices of the `kept` values of largest magnitude, ascending, zeros left out.
template <class T>
std::vector<std::size_t> Select(std::int64_t kept, std::span<const T> x) {
  const Bits<T> threshold = LargestKey(kept, x);
  const auto above = std::ranges::count_if(x, [&](T v) { return SelectionKey(v) > threshold; });
  std::int64_t ties = threshold == 0 ? 0 : kept - above;
  std::vector<std::size_t> indices;
  indices.reserve(static_cast<std::size_t>(above + ties));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Bits<T> key = SelectionKey(x[i]);
    if (key < threshold) continue;
    if (key == threshold && ties-- <= 0) continue;
    indices.push_back(i);
  }
  return indices;
}

std::string Gaps(const std::vector<std::size_t>& indices) {
  std::string gaps;
  gaps.reserve(2 * indices.size());
  std::size_t next = 0;
  for (const std::size_t i : indices) {
    AppendVarint(i - next, &gaps);
    next = i + 1;
  }
  return gaps;
}

std::string Bitmap(const std::vector<std::size_t>& indices, std::size_t bytes) {
  std::string bitmap(bytes, '\0');
  for (const std::size_t i : indices) {
    bitmap[i / 8] = static_cast<char>(bitmap[i / 8] | (1 << (i % 8)));
  }
  return bitmap;
}

// Takes `count` indices below n from the front of `text`.
std::vector<std::size_t> TakeIndices(char form, std::size_t count, std::size_t n,
                                     std::string_view* text) {
  std::vector<std::size_t> indices;
  indices.reserve(count);
  if (form == kGaps) {
    std::size_t next = 0;
    while (indices.size() < count) {
      if (next == n) Refuse("has an index beyond the block");
      next += TakeVarint(n - next - 1, text);
      indices.push_back(next++);
    }
    return indices;
  }
  if (form != kBitmap) Refuse("does not begin with 0 or 1");
  const std::size_t bytes = (n + 7) / 8;
  if (text->size() < bytes) Refuse("ends within the indices");
  for (std::size_t i = 0; i < 8 * bytes; ++i) {
    if (((*text)[i / 8] >> (i % 8) & 1) == 0) continue;
    if (i >= n || indices.size() == count) Refuse("has more indices than it says");
    indices.push_back(i);
  }
  if (indices.size() < count) Refuse("has fewer indices than it says");
  text->remove_prefix(bytes);
  return indices;
}

}  // namespace

std::int64_t KeptElements(double keep, std::int64_t elements) {
  const auto nearest =
      static_cast<std::int64_t>(std::llround(keep * static_cast<double>(elements)));
  return std::clamp<std::int64_t>(nearest, std::min<std::int64_t>(1, elements), elements);
}

std::int64_t LargestTopK(std::int64_t kept, std::int64_t elements, std::int64_t element_bytes) {
  const std::int64_t indices = std::min(kept * VarintBytes(elements), (elements + 7) / 8);
  return 1 + VarintBytes(kept) + indices + kept * element_bytes;
}

template <class T>
std::string EncodeTopK(std::int64_t kept, std::span<const T> x) {
  const std::vector<std::size_t> selected = Select(kept, x);
  std::string indices = Gaps(selected);
  const std::size_t bitmap_bytes = (x.size() + 7) / 8;
  std::string code(1, indices.size() <= bitmap_bytes ? kGaps : kBitmap);
  if (code[0] == kBitmap) indices = Bitmap(selected, bitmap_bytes);
  AppendVarint(selected.size(), &code);
  code += indices;
  const std::size_t start = code.size();
  code.resize(start + selected.size() * sizeof(T));
  char* out = code.data() + start;
  for (const std::size_t i : selected) {
    const T value = OneNaN(x[i]);
    std::memcpy(out, &value, sizeof(T));
    out += sizeof(T);
  }
  return code;
}

template <class T>
void DecodeTopK(std::int64_t kept, std::string_view code, std::span<T> x) {
  if (code.empty()) Refuse("is empty");
  const char form = code.front();
  code.remove_prefix(1);
  const std::size_t count = TakeVarint(static_cast<std::uint64_t>(kept), &code);
  if (count > code.size() / sizeof(T)) Refuse(fmt::format("ends within {} values", count));
  const std::vector<std::size_t> indices = TakeIndices(form, count, x.size(), &code);
  if (code.size() != count * sizeof(T)) {
    Refuse(fmt::format("has {} bytes for {} values of {}", code.size(), count, sizeof(T)));
  }
  std::ranges::fill(x, T{0});
  const char* in = code.data();
  for (const std::size_t i : indices) {
    std::memcpy(&x[i], in, sizeof(T));
    in += sizeof(T);
  }
}

template std::string EncodeTopK<float>(std::int64_t, std::span<const float>);
template std::string EncodeTopK<double>(std::int64_t, std::span<const double>);
template void DecodeTopK<float>(std::int64_t, std::string_view, std::span<float>);
template void DecodeTopK<double>(std::int64_t, std::string_view, std::span<double>);

}  // namespace spes::trainer
