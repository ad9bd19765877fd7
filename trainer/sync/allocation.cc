#include "trainer/sync/allocation.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace spes::trainer {

Allocation::Allocation(int nodes, std::vector<std::vector<int>> trainers)
    : nodes_(nodes),
      trainers_(std::move(trainers)),
      blocks_(static_cast<std::size_t>(std::max(nodes, 0))) {
  for (BlockId id = 0; id < static_cast<BlockId>(trainers_.size()); ++id) {
    const std::vector<int>& of_block = this->trainers(id);
    for (std::size_t i = 0; i < of_block.size(); ++i) {
      if (of_block[i] < 0 || of_block[i] >= nodes || (i > 0 && of_block[i] <= of_block[i - 1])) {
        throw std::invalid_argument(
            fmt::format("block {}: trainers must be ascending nodes from 0 to {}", id, nodes - 1));
      }
      blocks_[static_cast<std::size_t>(of_block[i])].push_back(id);
    }
  }
}

bool Allocation::Trains(int node, BlockId id) const {
  return std::binary_search(trainers(id).begin(), trainers(id).end(), node);
}

std::int64_t Allocation::TrainableElements(int node, const BlockTable& table) const {
  std::int64_t elements = 0;
  for (const BlockId id : blocks(node)) elements += table[id].elements;
  return elements;
}

Allocation MakeAllocation(AllocationKind kind, const BlockTable& table, int nodes) {
  if (nodes < 1) throw std::invalid_argument(fmt::format("{} nodes: at least 1 is needed", nodes));
  const int experts = table.experts();
  if (experts % nodes != 0) {
    std::string fitting;
    for (int n = 1; n <= experts; ++n) {
      if (experts % n == 0) fitting += (fitting.empty() ? "" : ", ") + std::to_string(n);
    }
    const int lower = experts / nodes * nodes;
    throw std::invalid_argument(fmt::format(
        "{} experts per layer cannot be shared out evenly among {} nodes: use {} nodes, or {} "
        "experts",
        experts, nodes, fitting,
        lower > 0 ? fmt::format("{} or {}", lower, lower + nodes) : std::to_string(nodes)));
  }
  std::vector<int> all(static_cast<std::size_t>(nodes));
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::vector<int>> trainers;
  for (const BlockSpec& block : table) {
    if (block.kind == BlockKind::kShared) {
      trainers.push_back(all);
    } else {
      const int owner = kind == AllocationKind::kContiguous ? block.expert / (experts / nodes)
                                                            : block.expert % nodes;
      trainers.push_back({owner});
    }
  }
  return Allocation(nodes, std::move(trainers));
}

}  // namespace spes::trainer
