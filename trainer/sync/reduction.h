// From the nodes' uploads to the new world: for each block the weighted mean over the trainers that
// arrived.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "trainer/node.h"
#include "trainer/sync/allocation.h"
#include "trainer/sync/world.h"

namespace spes::trainer {

// One round's reduction. Uploads come in any order; they are added in node order, so that the sum
// does not depend on arrivals: an upload waits until every lower member has been added or excluded,
// and its shared blocks are freed as soon as it has been added.
//
// Source: arXiv 2602.11543, the synchronisation step: S = Σ w_n S_n / Σ w_n over the nodes
// that arrived; an expert is the mean over its trainers, which for one owner is the owner's copy
// itself.
class Reduction {
 public:
  // `members` ascending: who may contribute. `previous` gives the values of blocks without a
  // contribution.
  Reduction(const Allocation& allocation, const World& previous, std::vector<int> members);

  // The blocks of `node`, each of the table's padded size, and the node's weight (> 0; 1 for equal
  // weights). Each member at most once, added or excluded.
  void Add(int node, std::vector<NodeBlock> blocks, double weight);

  // This member contributes nothing this round.
  void Exclude(int node);

  // How many members have neither been added nor excluded.
  int pending() const { return pending_; }

  // All members must be settled. The new world: contributed blocks with version `version`, the
  // others as before. A block with a single contribution is that contribution's buffer, not a copy.
  struct Result {
    World world;
    // For each block the node whose contribution was adopted as it is; kComputed where several were
    // averaged, kUnchanged where none came.
    std::vector<int> source;
  };
  static constexpr int kComputed = -1, kUnchanged = -2;
  Result Finish(Version version);

 private:
  struct Upload {
    std::vector<NodeBlock> blocks;
    double weight = 0;
  };
  struct Sum {
    SharedBuffer single;  // the only contribution so far
    int single_node = kUnchanged;
    double single_weight = 0;
    std::unique_ptr<Buffer> total;  // Σ w x, from the second contribution on
    double weight = 0;              // Σ w
  };
  void Settle();
  void CheckAwaited(int node) const;
  void AddToSum(Sum& sum, int node, const NodeBlock& block, double weight);

  const Allocation& allocation_;
  World previous_;
  std::vector<int> members_;
  std::size_t next_ = 0;  // index into members_ of the first unsettled one in order
  int pending_;
  std::map<int, Upload> waiting_;  // arrived, or excluded (weight 0), and not yet in order
  std::vector<Sum> sums_;          // [block]
};

}  // namespace spes::trainer
