// Who trains what: block → set of trainers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/sync/block_table.h"

namespace spes::trainer {

enum class AllocationKind {
  kContiguous,  // expert e of E to node ⌊e · N / E⌋: neighbours together, as in the paper
  kRoundRobin,  // expert e to node e mod N
  kAll,         // every expert to every node: dense training, FedAvg and DiLoCo
  kMemory,      // shares in proportion to what the nodes' memories hold
  kLoad,        // shares of equal load, by how often the experts were chosen: round robin at first
  kBandwidth,   // shares in proportion to the nodes' upload rates
  kList,        // as listed
};

// What becomes of optimiser moments when a block goes to another node.
enum class RotatedMoments {
  kHandedOver,  // they travel with the block
  kReset,       // the new trainer begins without
  kKept,        // each node keeps its own for when the block comes back; the first time without
};

// Shared parameters that some nodes do not train.
struct FrozenShared {
  std::vector<int> nodes;
  std::vector<std::string> parts;  // prefixes of part names: "embedding", "layers.0."
};

struct AllocationConfig {
  AllocationKind kind = AllocationKind::kContiguous;
  int replicas = 1;                           // trainers of each expert; not for kAll and kList
  std::vector<std::vector<int>> owners = {};  // kList: [expert] → its trainers
  std::vector<FrozenShared> frozen_shared = {};
  // Rounds after which every expert goes on to the next node, with kLoad after which the shares
  // are made anew; 0: never. Not for kAll, kMemory and kBandwidth.
  int rotate_every = 0;
  RotatedMoments moments = RotatedMoments::kHandedOver;
};

// What the kinds look at.
struct NodeCapacity {
  double memory_bytes = 0;  // kMemory; after what does not depend on its experts
  double up_bps = 0;        // kBandwidth
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

  bool operator==(const Allocation& other) const = default;

 private:
  int nodes_;
  std::vector<std::vector<int>> trainers_;    // [block]
  std::vector<std::vector<BlockId>> blocks_;  // [node]
};

// The allocation of the first round, before anything was measured. An expert goes, over all layers,
// to `replicas` different nodes: to n, n + 1, … modulo N where kContiguous or kRoundRobin gives one
// replica to n; with kMemory and kBandwidth E · replicas places are shared out, at most E for a
// node; with kLoad each replica bears the expert's load. Shares may be uneven, and nodes that own
// no expert train the shared blocks. `capacities` [node] for the kinds that look at them. Throws
// std::invalid_argument, one line, on fewer than one node, more replicas than nodes, capacities
// that are not positive, a list that names nodes or experts that do not exist or leaves an expert
// without trainers, a frozen part that no shared block has, a block that nobody would train, and
// settings without effect.
Allocation MakeAllocation(const AllocationConfig& config, const BlockTable& table, int nodes,
                          const std::vector<NodeCapacity>& capacities = {});

// The allocation of round `round` (from 1): of kLoad by `load` ([expert], times chosen so far in
// the run; empty: equal), of other kinds that of the first round with every expert's trainers n
// replaced by n + ⌊(round − 1) / rotate_every⌋ modulo N. Errors as above, and on loads that are
// negative, not finite or not one for each expert.
Allocation AllocationOfRound(const AllocationConfig& config, const BlockTable& table, int nodes,
                             const std::vector<NodeCapacity>& capacities, std::int32_t round,
                             const std::vector<double>& load);

// Whether AllocationOfRound(round) may differ from that of the round before: every rotate_every
// rounds.
bool MayChange(const AllocationConfig& config, std::int32_t round);

}  // namespace spes::trainer
