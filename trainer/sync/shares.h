// Experts shared out among unlike nodes, or by unlike loads.
#pragma once

#include <vector>

namespace spes::trainer {

// [node] → how many experts it trains, in proportion to `weights` [node] (> 0): experts · replicas
// places in all, at most `experts` for each node (what would be more goes to the others in the same
// proportion). Largest remainders, ties to the lower node. 1 ≤ replicas ≤ nodes.
std::vector<int> SharesInProportion(const std::vector<double>& weights, int experts, int replicas);

// [expert] → its trainers, distinct, where node n trains shares[n] ≤ experts: the nodes' places lie
// one behind the other and are filled by the experts 0 … E − 1 again and again, so that a node has
// neighbours. The sum of the shares is a multiple of `experts`.
std::vector<std::vector<int>> Deal(const std::vector<int>& shares, int experts);

// [expert] → its `replicas` trainers: the expert of the largest load first, each to the nodes of
// the least load so far, then the fewest experts, then the lowest number (longest processing time
// first, doi:10.1137/0117039). Equal loads e and f > e: e first. Throws std::invalid_argument, one
// line, on a load that is negative or not finite.
std::vector<std::vector<int>> SharesOfEqualLoad(const std::vector<double>& load, int nodes,
                                                int replicas);

}  // namespace spes::trainer
