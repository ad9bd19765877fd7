// Merge warm-up: similar experts move towards each other while they are young.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/sync/world.h"

namespace spes::trainer {

// What experts are compared by.
enum class MergeSimilarity {
  kW1,      // as in the paper
  kW2,      //
  kAll,     // w1, v1 and w2 together
  kRouter,  // the expert's row of the router
};

// How α falls from α0 at step 0 to 0 at T_merge, with x = min(t / T_merge, 1).
enum class MergeDecay {
  kLinear,    // 1 − x, as in the paper
  kCosine,    // (1 + cos πx) / 2
  kConstant,  // 1 until T_merge, then 0
};

enum class MergeMode {
  kExperts,  // w1, v1 and w2 of the same donors
  // As the released code does by mistake: it walks through unordered lists of keys, so that v1 and
  // w2 move with other experts than w1. Here: nearest experts are found by number; w1 of expert i
  // moves towards those of its nearest j, v1 and w2 of the i-th expert in the order of their names
  // as texts (0, 1, 10, 11, 2, …) towards those of the j-th. Up to ten experts: as kExperts.
  kReleased,
  // Hidden units of a donor are put into the order that fits the expert best before averaging
  // (Git Re-Basin, arXiv 2209.04836): the permutation P that maximises
  // ⟨w1ᵢ, P w1ⱼ⟩ + ⟨v1ᵢ, P v1ⱼ⟩ + ⟨w2ᵢ, P w2ⱼ⟩, rows of all three being hidden units.
  kAligned,
};

struct MergeConfig {
  std::int64_t interval = 0;  // steps between merges; 0: no merging
  double alpha = 0.05;        // α0
  std::int64_t length = 0;    // T_merge, the step at which α reaches 0
  int donors = 4;             // k, at most E − 1 are used
  MergeSimilarity similarity = MergeSimilarity::kW1;
  MergeDecay decay = MergeDecay::kLinear;
  MergeMode mode = MergeMode::kExperts;
};

// α_t = α0 · decay(min(t / T_merge, 1)); 0 from T_merge on, and for a length of 0.
double MergeAlpha(const MergeConfig& config, std::int64_t t);

// The α of a round that ends at step t and began after step `previous`: MergeAlpha where a multiple
// of the interval lies in (previous, t], else 0.
double MergeAlphaOfRound(const MergeConfig& config, std::int64_t previous, std::int64_t t);

// Cosine similarities between the experts of one layer of what `kind` says. Row-major [E, E],
// diagonal 1. Each value is computed by the same sequence of operations whatever its place: equal
// experts get bit-equal similarities, and the matrix is exactly symmetric. An all-zero expert is
// similar to none (0). Throws std::invalid_argument where the layer has no part
// "layers.<layer>.router" to compare by.
std::vector<double> ExpertSimilarity(const World& world, int layer, MergeSimilarity kind);

// For each expert the indices of its k = min(donors, E − 1) most similar others, most similar
// first, ties to the lower index.
std::vector<std::vector<int>> NearestExperts(const std::vector<double>& similarity, int experts,
                                             int donors);

// w_i += α · mean_j(w_j − w_i) over the donors j of i, for w1, v1 and w2 alike (but see MergeMode),
// all reads before any write. Source: arXiv 2602.11543, expert merging warm-up. Of `config` it
// takes donors, similarity and mode. Returns the world with new expert blocks of version `version`;
// layers with fewer than two experts are left as they are. `similarities`, when given, receives
// each layer's matrix before merging (empty for layers without experts). Beyond the new blocks and
// one [E, E] matrix it needs a row of a matrix, and with kAligned what AlignHiddenUnits needs and a
// permutation for each pair.
World MergeExperts(const World& world, double alpha, const MergeConfig& config, Version version,
                   std::vector<std::vector<double>>* similarities = nullptr);

}  // namespace spes::trainer
