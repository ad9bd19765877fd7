// Times at which numbered things are due, the first at hand.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "sim/units.h"

namespace spes::sim {

// A binary heap in which each number, 0 or more, has one time at most. O(log n) each. Among equal
// times the smallest number is first.
class Timers {
 public:
  bool empty() const { return heap_.empty(); }
  // kNever when empty.
  Time next() const { return heap_.empty() ? kNever : heap_.front().first; }
  // The number that is due at next(); not when empty.
  int first() const { return heap_.front().second; }

  // kNever takes it out.
  void Set(int number, Time at) {
    if (at == kNever) return Clear(number);
    if (static_cast<std::size_t>(number) >= place_.size()) place_.resize(number + 1, kNone);
    std::size_t i = place_[number];
    if (i == kNone) {
      i = heap_.size();
      heap_.emplace_back();
    }
    Settle(i, {at, number});
  }

  void Clear(int number) {
    if (static_cast<std::size_t>(number) >= place_.size() || place_[number] == kNone) return;
    const std::size_t i = place_[number];
    place_[number] = kNone;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (i < heap_.size()) Settle(i, last);
  }

 private:
  using Entry = std::pair<Time, int>;
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  // Finds the place of an entry for which there is room at `i`.
  void Settle(std::size_t i, Entry entry) {
    while (i > 0 && entry < heap_[(i - 1) / 2]) {
      Put(i, heap_[(i - 1) / 2]);
      i = (i - 1) / 2;
    }
    for (;;) {
      std::size_t child = 2 * i + 1;
      if (child + 1 < heap_.size() && heap_[child + 1] < heap_[child]) ++child;
      if (child >= heap_.size() || entry < heap_[child]) break;
      Put(i, heap_[child]);
      i = child;
    }
    Put(i, entry);
  }

  void Put(std::size_t i, Entry entry) {
    heap_[i] = entry;
    place_[entry.second] = i;
  }

  std::vector<Entry> heap_;
  std::vector<std::size_t> place_;  // [number] in the heap
};

}  // namespace spes::sim
