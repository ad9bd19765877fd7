// One logical node: trains its blocks on its data. Knows nothing of rounds or networks. No LibTorch
// here.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/records.h"
#include "trainer/state_bytes.h"
#include "trainer/sync/world.h"

namespace spes::trainer {

// How often each expert was chosen, and how sure the router was; sums over the tokens of some
// steps.
struct RoutingCounts {
  std::int64_t tokens = 0;
  std::vector<std::vector<std::int64_t>> routed;  // [layer][expert]: slots
  std::vector<double> entropy_sum;  // [layer]: Σ over tokens of the router's entropy, nats
  void Add(const RoutingCounts& other);
};

struct TrainResult {
  std::vector<analysis::StepRecord> steps;  // node, round and virtual_s are left to the caller
  RoutingCounts routing;
};

// A block of which the node holds a value of its own, and its optimiser moments where they are
// wanted.
struct NodeBlock {
  BlockId id = 0;
  SharedBuffer data;
  SharedMoments moments = nullptr;
};

// Called from one thread at a time, not always the same one. Results depend on the calls' order and
// arguments alone, never on threads or other nodes.
class Node {
 public:
  virtual ~Node() = default;

  // The blocks that this node trains, ascending.
  virtual const std::vector<BlockId>& trainable() const = 0;

  // From now on it trains these, ascending. A block that it did not train before starts from the
  // value it had here; one that it trains no more keeps its value until another is applied.
  // Moments: of blocks that stay, as they are; of those that come, zero, unless `keep_moments` and
  // the node trained them before: then those it had when it last did.
  virtual void SetTrainable(std::vector<BlockId> ids, bool keep_moments) = 0;

  // Trains steps first_step … first_step + steps − 1 (the schedule's t, from 1). Blocks for the
  // duration; `stop` is looked at between steps: when set, returns early with the steps done.
  // Throws std::runtime_error when the data cannot be read.
  virtual TrainResult TrainSteps(std::int64_t first_step, int steps,
                                 const std::atomic<bool>& stop) = 0;

  // Its data go on as if it had trained so many steps more. Of a node without a past that takes the
  // place of one that is lost.
  virtual void SkipSteps(std::int64_t steps) = 0;

  // Copies of these blocks, all of them trainable, as they are now: of a node that trains, the
  // values; of one that only computes gradients, those of its last step.
  virtual std::vector<NodeBlock> Read(std::span<const BlockId> ids, bool with_moments) const = 0;

  // Adopts published values: a trainable block becomes keep · own + (1 − keep) · published in the
  // node's working copy, any other is referred to. Optimiser state stays as it is, except where a
  // trainable block comes with moments: those are mixed likewise, and count as many updates as the
  // larger of both; with keep 0 as the published ones.
  virtual void Apply(std::span<const NodeBlock> blocks, double keep) = 0;
  void Apply(std::span<const NodeBlock> blocks) { Apply(blocks, 0); }

  // Forgets the optimiser state of these blocks, also what is kept of those it trains no more.
  virtual void ResetOptimizer(std::span<const BlockId> ids) = 0;

  // Everything that makes the node's future: working copy, moments and their counts, data position.
  // It may lie in the node's own memory: good until the node is called again.
  virtual StateBytes Save() const = 0;
  // Throws std::invalid_argument when the text is not a state of a node with these blocks.
  virtual void Load(std::string_view state) = 0;
};

}  // namespace spes::trainer
