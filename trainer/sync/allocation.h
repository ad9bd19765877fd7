// Who trains what: block → set of trainers.
#pragma once

#include <string>
#include <vector>

#include "trainer/sync/block_table.h"

namespace spes::trainer {

enum class AllocationKind {
  kContiguous,  // expert e to node e / (E/N), as in the paper
  kRoundRobin,  // expert e to node e mod N
};

// For each block the nodes that train it, ascending. Immutable.
class Allocation {
 public:
  Allocation(int nodes, std::vector<std::vector<int>> trainers);

  int nodes() const { return nodes_; }
  const std::vector<int>& trainers(BlockId id) const {
    return trainers_[static_cast<std::size_t>(id)];
  }
  // The blocks of one node, ascending.
  const std::vector<BlockId>& blocks(int node) const {
    return blocks_[static_cast<std::size_t>(node)];
  }
  bool Trains(int node, BlockId id) const;

  // Elements that a node trains.
  std::int64_t TrainableElements(int node, const BlockTable& table) const;

 private:
  int nodes_;
  std::vector<std::vector<int>> trainers_;    // [block]
  std::vector<std::vector<BlockId>> blocks_;  // [node]
};

// Shared blocks to every node; each expert, over all layers, to one node. Throws
// std::invalid_argument, one line with the numbers that would fit, unless 1 ≤ nodes and the number
// of experts is a multiple of the number of nodes (a dense model has none and fits any number).
Allocation MakeAllocation(AllocationKind kind, const BlockTable& table, int nodes);

}  // namespace spes::trainer
