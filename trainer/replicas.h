// One node's model on each of its devices, and the gradients of a step over all of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trainer/data/batch.h"
#include "trainer/model/model.h"
#include "trainer/model/published_tensors.h"
#include "trainer/runtime/compute_pool.h"

namespace spes::trainer {

// Means over a step's microbatches.
struct StepLosses {
  double ce = 0, z = 0, lb = 0, rz = 0;
};

struct StepGradients {
  // Of the blocks that were asked for, on the first device, in their shapes and contiguous.
  std::vector<at::Tensor> blocks;
  StepLosses losses;
};

// Data-parallel inside one process. Microbatch i of a step goes to replica i modulo their number;
// replicas work at the same time, each on a thread of its own, and each microbatch's gradients are
// added on the first device in the order of the microbatches. So any number of replicas on devices
// of one kind gives the same bits as one replica that accumulates. Used from one thread at a time.
class Replicas {
 public:
  // One replica on each place, the first of which is home to the node's own values. For sequences
  // of `context` tokens.
  Replicas(const ModelConfig& config, std::shared_ptr<const BlockTable> table, std::int64_t context,
           std::span<const ModelPlace> places, std::shared_ptr<PublishedTensors> published);

  at::Device home() const { return replicas_[0].place.device; }
  // The home replica's parameter, in the shape of BlockTensor.
  const at::Tensor& parameter(BlockId id) const;

  // Points all replicas at a published value, which nobody writes and which must outlive that.
  // `trains`: gradients of it are wanted.
  void Refer(BlockId id, const SharedBuffer& value, bool trains);

  // Points the home replica at the node's own value, `flat` [buffer_elements] on home, and the
  // others at copies of it. Gradients of it are wanted.
  void Own(BlockId id, const at::Tensor& flat);

  // After the node's own values have changed: copies them to the other replicas.
  void Broadcast(std::span<const BlockId> ids);

  // Forward and backward passes of the batch's sequences, `rows` at once, which divides their
  // number; gradients of the mean loss with regard to the blocks `trains`. `preference`: null or
  // [L · E], see RouterOptions. Adds to `counts`, which has a row per layer. Throws what a pass
  // throws, after all replicas have ended theirs.
  StepGradients Step(const Batch& batch, std::int64_t rows, std::span<const BlockId> trains,
                     const double* preference, RoutingCounts& counts);

 private:
  struct Replica {
    ModelPlace place;
    Model model;
    std::vector<at::Tensor> parameters;  // by BlockId
  };
  struct Pass {  // of one microbatch
    StepLosses losses;
    RoutingCounts counts;
  };
  class Turns;

  Pass ForwardAndBackward(Replica& replica, const Batch& batch, std::int64_t first,
                          std::int64_t rows, const double* preference) const;
  // Takes the replica's gradients and adds them to `sum`, which is empty at first.
  void AddGradients(Replica& replica, std::span<const BlockId> trains,
                    std::vector<at::Tensor>& sum) const;

  const std::shared_ptr<const BlockTable> table_;
  const std::shared_ptr<PublishedTensors> published_;
  std::vector<Replica> replicas_;
  std::unique_ptr<ComputePool> others_;  // a thread for each replica but the first
};

}  // namespace spes::trainer
