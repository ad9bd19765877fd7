// Merge warm-up: similar experts move towards each other while they are young.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/sync/world.h"

namespace spes::trainer {

struct MergeConfig {
  std::int64_t interval = 0;  // steps between merges; 0: no merging
  double alpha = 0.05;        // α0
  std::int64_t length = 0;    // T_merge, the step at which α reaches 0
  int donors = 4;             // k, at most E − 1 are used
};

// α_t = α0 · (1 − min(t / T_merge, 1)); 0 for a length of 0.
double MergeAlpha(const MergeConfig& config, std::int64_t t);

// The α of a round that ends at step t and began after step `previous`: MergeAlpha where a multiple
// of the interval lies in (previous, t], else 0.
double MergeAlphaOfRound(const MergeConfig& config, std::int64_t previous, std::int64_t t);

// Cosine similarities of vec(w1) between the experts of one layer. Row-major [E, E], diagonal 1.
// Each value is computed by the same sequence of operations whatever its place: equal experts get
// bit-equal similarities, and the matrix is exactly symmetric. An all-zero expert is similar to
// none (0).
std::vector<double> ExpertSimilarity(const World& world, int layer);

// For each expert the indices of its k = min(donors, E − 1) most similar others, most similar
// first, ties to the lower index.
std::vector<std::vector<int>> NearestExperts(const std::vector<double>& similarity, int experts,
                                             int donors);

// w_i += α · mean_j(w_j − w_i) over the donors j of i, for w1, v1 and w2 alike, all reads before
// any write. Source: arXiv 2602.11543, expert merging warm-up. Returns the world with new
// expert blocks of version `version`; layers with fewer than two experts are left as they are.
// `similarities`, when given, receives each layer's matrix before merging (empty for layers without
// experts).
World MergeExperts(const World& world, double alpha, int donors, Version version,
                   std::vector<std::vector<double>>* similarities = nullptr);

}  // namespace spes::trainer
