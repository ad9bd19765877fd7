// A mean that a few odd contributions cannot move.
#pragma once

#include <vector>

#include "trainer/sync/buffer.h"

namespace spes::trainer {

// Of n = values.size() ≥ 1 finite buffers of one size, per element: the mean of what is left
// without the `cut` smallest and the `cut` largest, 0 ≤ cut ≤ (n − 1) / 2 rounded down. With that
// largest cut it is the median, of an even number the mean of the two in the middle. O(n²)
// comparisons. Source: arXiv 1803.01498.
SharedBuffer TrimmedMean(DType dtype, const std::vector<SharedBuffer>& values, int cut);

}  // namespace spes::trainer
