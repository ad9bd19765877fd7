// Hidden units of one expert in the order of another's.
#pragma once

#include <vector>

#include "trainer/sync/world.h"

namespace spes::trainer {

// Two experts of one shape: [hidden unit of `expert`] → the unit of `other` that stands for it, the
// permutation P that maximises ⟨w1, P w1'⟩ + ⟨v1, P v1'⟩ + ⟨w2, P w2'⟩ (rows are hidden units).
// Memory: one [F, F] matrix of doubles; time O(F² D + F³). Source: Git Re-Basin, arXiv 2209.04836,
// weight matching.
std::vector<int> AlignHiddenUnits(const World& world, BlockId expert, BlockId other);

// The permutation of the opposite direction.
std::vector<int> Inverse(const std::vector<int>& permutation);

}  // namespace spes::trainer
