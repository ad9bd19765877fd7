#include "trainer/sync/allocation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "trainer/sync/shares.h"

namespace spes::trainer {

namespace {

using Owners = std::vector<std::vector<int>>;  // [expert] → its trainers, in any order

[[noreturn]] void Refuse(std::string reason) { throw std::invalid_argument(std::move(reason)); }

// `replicas` nodes from `first` on, modulo `nodes`.
std::vector<int> Neighbours(int first, int replicas, int nodes) {
  std::vector<int> trainers;
  for (int r = 0; r < replicas; ++r) trainers.push_back((first + r) % nodes);
  return trainers;
}

void CheckList(const Owners& owners, int experts, int nodes) {
  if (static_cast<int>(owners.size()) != experts) {
    Refuse(fmt::format("owners of {} experts are listed, but there are {} in each layer",
                       owners.size(), experts));
  }
  for (std::size_t e = 0; e < owners.size(); ++e) {
    if (owners[e].empty()) Refuse(fmt::format("expert {} has no owner in the list", e));
    std::vector<int> sorted = owners[e];
    std::sort(sorted.begin(), sorted.end());
    for (const int n : {sorted.front(), sorted.back()}) {
      if (n < 0 || n >= nodes) {
        Refuse(fmt::format("expert {} is listed for node {}; nodes are from 0 to {}", e, n,
                           nodes - 1));
      }
    }
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
      Refuse(fmt::format("expert {} is listed twice for one node", e));
    }
  }
}

std::vector<double> Capacities(AllocationKind kind, const std::vector<NodeCapacity>& capacities,
                               int nodes) {
  const bool memory = kind == AllocationKind::kMemory;
  if (static_cast<int>(capacities.size()) != nodes) {
    Refuse(fmt::format("shares by {} need that of each node: {} are known of {}",
                       memory ? "memory" : "upload rate", capacities.size(), nodes));
  }
  std::vector<double> values;
  for (const NodeCapacity& c : capacities) {
    values.push_back(memory ? c.memory_bytes : c.up_bps);
    if (!(values.back() > 0) || !std::isfinite(values.back())) {
      Refuse(fmt::format("node {} has {} for experts; it must be more than 0", values.size() - 1,
                         memory ? fmt::format("{:.0f} bytes of memory", values.back())
                                : fmt::format("an upload rate of {:.0f} bit/s", values.back())));
    }
  }
  return values;
}

Owners OwnersOf(const AllocationConfig& config, int experts, int nodes,
                const std::vector<NodeCapacity>& capacities, const std::vector<double>& load) {
  if (config.kind == AllocationKind::kList) {
    CheckList(config.owners, experts, nodes);
    return config.owners;
  }
  if (config.kind == AllocationKind::kLoad) {
    const auto n = static_cast<std::size_t>(experts);
    if (!load.empty() && load.size() != n) {
      Refuse(fmt::format("loads of {} experts are known, but there are {} in each layer",
                         load.size(), experts));
    }
    return SharesOfEqualLoad(load.empty() ? std::vector<double>(n, 1.0) : load, nodes,
                             config.replicas);
  }
  if (config.kind == AllocationKind::kMemory || config.kind == AllocationKind::kBandwidth) {
    return Deal(
        SharesInProportion(Capacities(config.kind, capacities, nodes), experts, config.replicas),
        experts);
  }
  Owners owners;
  for (int e = 0; e < experts; ++e) {
    switch (config.kind) {
      case AllocationKind::kContiguous:
        owners.push_back(Neighbours(static_cast<int>(std::int64_t{e} * nodes / experts),
                                    config.replicas, nodes));
        break;
      case AllocationKind::kRoundRobin:
        owners.push_back(Neighbours(e % nodes, config.replicas, nodes));
        break;
      default:
        owners.push_back(Neighbours(0, nodes, nodes));
    }
  }
  return owners;
}

bool StartsWith(const std::string& text, const std::string& prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

// Takes the frozen nodes out of `trainers` [block].
void Freeze(const FrozenShared& frozen, const BlockTable& table, int nodes,
            std::vector<std::vector<int>>& trainers) {
  if (frozen.nodes.empty() || frozen.parts.empty()) {
    Refuse("frozen shared parameters need both nodes and parts");
  }
  for (const int node : frozen.nodes) {
    if (node < 0 || node >= nodes) {
      Refuse(fmt::format("shared parameters are frozen on node {}; nodes are from 0 to {}", node,
                         nodes - 1));
    }
  }
  for (const std::string& prefix : frozen.parts) {
    bool found = false;
    for (BlockId id = 0; id < table.size(); ++id) {
      const BlockSpec& block = table[id];
      if (block.kind != BlockKind::kShared ||
          std::none_of(block.parts.begin(), block.parts.end(),
                       [&](const BlockPart& part) { return StartsWith(part.name, prefix); })) {
        continue;
      }
      found = true;
      for (const int node : frozen.nodes) {
        std::erase(trainers[static_cast<std::size_t>(id)], node);
      }
    }
    if (!found) Refuse(fmt::format("no shared parameter begins with '{}'", prefix));
  }
}

void Validate(const AllocationConfig& config, int nodes) {
  if (nodes < 1) Refuse(fmt::format("{} nodes: at least 1 is needed", nodes));
  const bool without_replicas =
      config.kind == AllocationKind::kAll || config.kind == AllocationKind::kList;
  if (without_replicas && config.replicas != 1) {
    Refuse(fmt::format("{} replicas of each expert, but {} says already who trains it",
                       config.replicas,
                       config.kind == AllocationKind::kAll ? "'all'" : "the list"));
  }
  if (config.replicas < 1 || config.replicas > nodes) {
    Refuse(fmt::format("{} replicas of each expert among {} nodes: from 1 to {}", config.replicas,
                       nodes, nodes));
  }
  if (config.kind != AllocationKind::kList && !config.owners.empty()) {
    Refuse("owners are listed, but experts are not allocated by the list");
  }
  if (config.rotate_every < 0) {
    Refuse(fmt::format("rotation after {} rounds: at least 0", config.rotate_every));
  }
  if (config.kind == AllocationKind::kLoad && config.rotate_every == 0) {
    Refuse("shares of equal load need rotate_every, the rounds after which they are made anew");
  }
  const bool fixed = config.kind == AllocationKind::kAll ||
                     config.kind == AllocationKind::kMemory ||
                     config.kind == AllocationKind::kBandwidth;
  if (fixed && config.rotate_every > 0) {
    Refuse(config.kind == AllocationKind::kAll
               ? "nothing can rotate where every node trains every expert"
               : "shares that fit one node would rotate to another; leave rotate_every at 0");
  }
}

}  // namespace

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

Allocation AllocationOfRound(const AllocationConfig& config, const BlockTable& table, int nodes,
                             const std::vector<NodeCapacity>& capacities, std::int32_t round,
                             const std::vector<double>& load) {
  Validate(config, nodes);
  Owners owners = OwnersOf(config, table.experts(), nodes, capacities, load);
  const bool rotates = config.rotate_every > 0 && config.kind != AllocationKind::kLoad;
  const int shift = rotates ? (round - 1) / config.rotate_every % nodes : 0;
  for (std::vector<int>& trainers : owners) {
    for (int& n : trainers) n = (n + shift) % nodes;
    std::sort(trainers.begin(), trainers.end());
  }
  std::vector<int> all(static_cast<std::size_t>(nodes));
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::vector<int>> trainers;
  for (const BlockSpec& block : table) {
    trainers.push_back(
        block.kind == BlockKind::kShared ? all : owners[static_cast<std::size_t>(block.expert)]);
  }
  for (const FrozenShared& frozen : config.frozen_shared) Freeze(frozen, table, nodes, trainers);
  for (BlockId id = 0; id < table.size(); ++id) {
    if (trainers[static_cast<std::size_t>(id)].empty()) {
      Refuse(fmt::format("{} is frozen on all nodes", table[id].parts.front().name));
    }
  }
  return Allocation(nodes, std::move(trainers));
}

Allocation MakeAllocation(const AllocationConfig& config, const BlockTable& table, int nodes,
                          const std::vector<NodeCapacity>& capacities) {
  return AllocationOfRound(config, table, nodes, capacities, 1, {});
}

bool MayChange(const AllocationConfig& config, std::int32_t round) {
  return config.rotate_every > 0 && round > 1 && (round - 1) % config.rotate_every == 0;
}

}  // namespace spes::trainer
