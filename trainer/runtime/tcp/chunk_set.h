// Which chunks of a transfer are there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "trainer/runtime/tcp/link.h"

namespace spes::trainer {

// As ranges: millions of chunks that come almost in order are few of them.
class ChunkSet {
 public:
  // Calls `f(chunk)` for each of the range that was not there, ascending.
  template <class F>
  void Add(ChunkRange range, F f) {
    auto at = ranges_.upper_bound(range.first);
    if (at != ranges_.begin() && std::prev(at)->second >= range.first) --at;
    std::uint32_t next = range.first;
    ChunkRange whole = range;
    while (at != ranges_.end() && at->first <= range.end) {
      for (; next < std::min(at->first, range.end); ++next) f(next);
      next = std::max(next, at->second);
      whole = {std::min(whole.first, at->first), std::max(whole.end, at->second)};
      at = ranges_.erase(at);
    }
    for (; next < range.end; ++next) f(next);
    ranges_.emplace(whole.first, whole.end);
  }

  // Ascending, the first `most` of them.
  std::vector<ChunkRange> Ranges(std::size_t most) const {
    std::vector<ChunkRange> ranges;
    for (auto at = ranges_.begin(); at != ranges_.end() && ranges.size() < most; ++at) {
      ranges.push_back({at->first, at->second});
    }
    return ranges;
  }

 private:
  std::map<std::uint32_t, std::uint32_t> ranges_;  // first, end; none touches another
};

}  // namespace spes::trainer
