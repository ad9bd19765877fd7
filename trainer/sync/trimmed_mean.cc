#include "trainer/sync/trimmed_mean.h"

#include <algorithm>
#include <cstddef>

namespace spes::trainer {

namespace {

// Elements that are sorted at a time: all contributions' rows stay in the first-level cache.
constexpr std::size_t kChunk = 128;

template <class T>
SharedBuffer Of(const std::vector<SharedBuffer>& values, int cut) {
  const std::size_t n = values.size(), size = values.front()->as<T>().size();
  const auto first = static_cast<std::size_t>(cut);
  auto result = std::make_shared<Buffer>(values.front()->bytes());
  std::vector<T> rows(n * kChunk);
  for (std::size_t begin = 0; begin < size; begin += kChunk) {
    const std::size_t count = std::min(kChunk, size - begin);
    for (std::size_t r = 0; r < n; ++r) {
      std::copy_n(values[r]->as<T>().data() + begin, count, rows.data() + r * kChunk);
    }
    // Bubble sort of whole rows: all elements at once, without a branch.
    for (std::size_t last = n - 1; last > 0; --last) {
      for (std::size_t r = 0; r < last; ++r) {
        T* low = rows.data() + r * kChunk;
        T* high = low + kChunk;
        for (std::size_t i = 0; i < kChunk; ++i) {
          const T smaller = std::min(low[i], high[i]), larger = std::max(low[i], high[i]);
          low[i] = smaller;
          high[i] = larger;
        }
      }
    }
    double sums[kChunk] = {};
    for (std::size_t r = first; r < n - first; ++r) {
      for (std::size_t i = 0; i < kChunk; ++i) {
        sums[i] += static_cast<double>(rows[r * kChunk + i]);
      }
    }
    const auto left = static_cast<double>(n - 2 * first);
    for (std::size_t i = 0; i < count; ++i) {
      result->as<T>()[begin + i] = static_cast<T>(sums[i] / left);
    }
  }
  return result;
}

}  // namespace

SharedBuffer TrimmedMean(DType dtype, const std::vector<SharedBuffer>& values, int cut) {
  return dtype == DType::kFloat32 ? Of<float>(values, cut) : Of<double>(values, cut);
}

}  // namespace spes::trainer
