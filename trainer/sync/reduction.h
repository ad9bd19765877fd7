// From the nodes' uploads to the new world: for each block one value from those of the trainers
// that arrived.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "trainer/node.h"
#include "trainer/sync/weighted_mean.h"
#include "trainer/sync/world.h"

namespace spes::trainer {

enum class ReductionKind {
  kMean,         // Σ f x / Σ f, f a contribution's factor (1 for all: the plain mean)
  kTokenMean,    // Σ f w x / Σ f w, w the tokens that a node trained on
  kOwner,        // the value of the lowest of the trainers that arrived
  kTrimmedMean,  // per element the mean without the ⌊trim · n⌋ smallest and largest
  kMedian,       // per element; of an even number the mean of the two in the middle
};

// Whether all contributions are compared with each other, so that they are held until the end, and
// count alike.
constexpr bool IsRobust(ReductionKind kind) {
  return kind == ReductionKind::kTrimmedMean || kind == ReductionKind::kMedian;
}

struct ReductionRule {
  ReductionKind kind = ReductionKind::kMean;
  double trim = 0.25;  // kTrimmedMean: share of the contributions at each end, in [0, 0.5)
};

// Throws std::invalid_argument, one line, on a trim out of range.
void Validate(const ReductionRule& rule);

// What becomes of the optimiser moments of a block when it is published.
enum class MomentsRule {
  kKept,      // each node keeps its own, as in the paper
  kReset,     // forgotten
  kAveraged,  // they travel with the block and are averaged like it
};

struct ReductionConfig {
  ReductionRule shared = {}, experts = {};
};

// One round's reduction. Uploads come in any order; they are added in node order, so that the sum
// does not depend on arrivals: an upload waits until every lower member has been added or excluded.
// Its blocks that go into a mean are freed as soon as they have been added.
//
// Source: arXiv 2602.11543, the synchronisation step: S = Σ w_n S_n / Σ w_n over the nodes
// that arrived; an expert is the mean over its trainers, which for one owner is the owner's copy
// itself.
class Reduction {
 public:
  // `members` ascending: who may contribute. `previous` gives the values of blocks without a
  // contribution. Throws as Validate does.
  Reduction(const ReductionConfig& config, const World& previous, std::vector<int> members);

  // The blocks of `node`, each of the table's padded size and with finite values; the tokens that
  // it trained on; and a factor for what is worth less than others (a stale result; 1 normally).
  // Both > 0. Which of the two count is the rule's: see ReductionKind; robust rules and kOwner
  // ignore both. Each member at most once, added or excluded.
  void Add(int node, std::vector<NodeBlock> blocks, double tokens, double factor = 1);

  // This member contributes nothing this round.
  void Exclude(int node);

  // All members must be settled. The new world: contributed blocks with version `version`, the
  // others as before. A block with a single contribution is that contribution's buffer, not a copy.
  struct Result {
    World world;
    // For each block the node whose contribution was adopted as it is; kComputed where several were
    // reduced, kUnchanged where none came.
    std::vector<int> source;
    // [block]: of the contributions that came with moments the mean of the first and of the second
    // ones, weighted as the values are (robust rules: equally; kOwner: the adopted node's), and the
    // largest number of updates. A single one is passed on as it is; null where none came.
    std::vector<SharedMoments> moments;
  };
  static constexpr int kComputed = -1, kUnchanged = -2;
  Result Finish(Version version);

 private:
  struct Upload {
    std::vector<NodeBlock> blocks;
    double tokens = 0, factor = 0;
  };
  // What has come for one block.
  struct Sum {
    WeightedMean mean;               // mean rules and kOwner
    std::vector<SharedBuffer> held;  // robust rules
    int count = 0;
    int first_node = kUnchanged;
    SharedMoments moments;  // the only ones so far
    WeightedMean first, second;
    std::int64_t updates = 0;
  };
  const ReductionRule& RuleOf(BlockId id) const;
  void Settle();
  void CheckAwaited(int node) const;
  void AddToSum(int node, const Upload& upload, const NodeBlock& block);
  SharedBuffer Reduced(BlockId id, Sum& sum) const;
  SharedMoments ReducedMoments(Sum& sum) const;

  ReductionConfig config_;
  World previous_;
  std::vector<int> members_;
  std::size_t next_ = 0;  // index into members_ of the first unsettled one in order
  int pending_;
  std::map<int, Upload> waiting_;  // arrived, or excluded (no blocks), and not yet in order
  std::vector<Sum> sums_;          // [block]
};

}  // namespace spes::trainer
