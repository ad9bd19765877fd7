// Σ w x / Σ w over buffers that come one after the other.
#pragma once

#include <memory>

#include "trainer/sync/buffer.h"

namespace spes::trainer {

// The first buffer is kept and not copied until a second one comes; of the others nothing is kept.
// The sum is in the order of the calls.
class WeightedMean {
 public:
  // `x` of the same size each time, elements of type `dtype`; weight > 0.
  void Add(DType dtype, const SharedBuffer& x, double weight);
  // How many have been added.
  int count() const { return count_; }
  // At least one must have been added. The only one itself, or a new buffer with the mean.
  SharedBuffer Finish(DType dtype);

 private:
  SharedBuffer single_;            // the only one so far
  std::unique_ptr<Buffer> total_;  // Σ w x, from the second on
  double weight_ = 0;              // Σ w
  int count_ = 0;
};

}  // namespace spes::trainer
