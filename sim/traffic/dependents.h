// Who waits for a transfer: the reverse of Transfer::after.
#pragma once

#include <span>
#include <vector>

#include "sim/traffic/plan.h"

namespace spes::sim {

// Lists of numbers, one behind the other in one array: millions of them cost no allocation each.
class IndexLists {
 public:
  // `count` lists; `each(add)` is called twice and must call add(list, value) the same way.
  template <class Each>
  IndexLists(std::size_t count, const Each& each) : begin_(count + 1) {
    each([this](int list, int) { ++begin_[static_cast<std::size_t>(list) + 1]; });
    for (std::size_t i = 0; i < count; ++i) begin_[i + 1] += begin_[i];
    values_.resize(begin_[count]);
    std::vector<std::size_t> next(begin_.begin(), begin_.end() - 1);
    each([&](int list, int value) { values_[next[static_cast<std::size_t>(list)]++] = value; });
  }

  // In the order in which they were added.
  std::span<const int> Of(int list) const {
    const auto i = static_cast<std::size_t>(list);
    return {values_.data() + begin_[i], begin_[i + 1] - begin_[i]};
  }

 private:
  std::vector<std::size_t> begin_;
  std::vector<int> values_;
};

// The dependencies of the plan must name transfers of it.
class Dependents : public IndexLists {
 public:
  explicit Dependents(const TrafficPlan& plan)
      : IndexLists(plan.transfers.size(), [&plan](const auto& add) {
          for (std::size_t i = 0; i < plan.transfers.size(); ++i) {
            for (const int before : plan.transfers[i].after) add(before, static_cast<int>(i));
          }
        }) {}
};

}  // namespace spes::sim
