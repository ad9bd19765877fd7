#include "trainer/sync/alignment.h"

#include <cstddef>
#include <span>

#include "trainer/sync/assignment.h"
#include "trainer/sync/dot.h"

namespace spes::trainer {

namespace {

template <class T>
std::vector<int> Align(const World& world, BlockId expert, BlockId other) {
  const BlockSpec& spec = (*world.table)[expert];
  const std::span<const T> a = world.blocks[static_cast<std::size_t>(expert)].data->as<T>();
  const std::span<const T> b = world.blocks[static_cast<std::size_t>(other)].data->as<T>();
  const auto units = static_cast<std::size_t>(spec.parts.front().shape.front());
  std::vector<double> cost(units * units, 0.0);
  for (const BlockPart& part : spec.parts) {
    const std::size_t width = static_cast<std::size_t>(part.elements) / units;
    const auto row = [&](std::span<const T> block, std::size_t unit) {
      return block.subspan(static_cast<std::size_t>(part.offset) + unit * width, width);
    };
    for (std::size_t i = 0; i < units; ++i) {
      for (std::size_t j = 0; j < units; ++j) {
        cost[i * units + j] -= Dot(row(a, i), row(b, j));
      }
    }
  }
  return MinimalAssignment(cost, static_cast<int>(units));
}

}  // namespace

std::vector<int> AlignHiddenUnits(const World& world, BlockId expert, BlockId other) {
  return world.table->dtype() == DType::kFloat32 ? Align<float>(world, expert, other)
                                                 : Align<double>(world, expert, other);
}

std::vector<int> Inverse(const std::vector<int>& permutation) {
  std::vector<int> inverse(permutation.size());
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    inverse[static_cast<std::size_t>(permutation[i])] = static_cast<int>(i);
  }
  return inverse;
}

}  // namespace spes::trainer
