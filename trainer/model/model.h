// The decoder: from tokens to the four losses.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trainer/model/config.h"
#include "trainer/model/experts.h"
#include "trainer/node.h"

namespace spes::trainer {

// The losses of one microbatch, each as algorithm.md defines it.
struct ModelLosses {
  at::Tensor total;   // scalar, the sum of the four: what is differentiated
  at::Tensor output;  // [2]: CE, z
  at::Tensor router;  // [2]: LB, RZ; not defined in a dense model
};

// What lies between; for tests.
struct ModelTrace {
  at::Tensor logits;                      // [N, V]
  std::vector<at::Tensor> router_logits;  // [N, E] of each layer
};

// Holds no parameters. Immutable and thread-safe once built.
class Model {
 public:
  // For sequences of up to `context` tokens. `table` is MakeBlockTable(config).
  Model(const ModelConfig& config, std::shared_ptr<const BlockTable> table, std::int64_t context);

  // tokens and targets [N] int32, sequences of `context` tokens one behind the other; parameters
  // as BlockTensor makes them, by BlockId: those that require a gradient get it from
  // total.backward(). `counts`, if given, has one row per layer and is added to. `preference`, if
  // given, is [L · E]: see RouterOptions. Throws std::runtime_error on a token outside the
  // vocabulary.
  ModelLosses Losses(std::span<const at::Tensor> parameters, const at::Tensor& tokens,
                     const at::Tensor& targets, std::int64_t context,
                     RoutingCounts* counts = nullptr, const double* preference = nullptr,
                     ModelTrace* trace = nullptr) const;

 private:
  struct Layer {
    BlockId attn_norm, q, k, v, q_norm = -1, k_norm = -1, o, ffn_norm;
    BlockId router = -1, w1 = -1, v1 = -1, w2 = -1;  // router, or a dense layer's matrices
    std::vector<BlockId> experts;
    ExpertLayout layout;
  };

  // What attention and the experts (or the dense layer) add to the residual stream; h is its norm.
  at::Tensor Attend(const Layer& layer, std::span<const at::Tensor> parameters, const at::Tensor& h,
                    const at::Tensor& rotary) const;
  at::Tensor FeedForward(std::size_t l, std::span<const at::Tensor> parameters, const at::Tensor& h,
                         ModelLosses& losses, RoutingCounts* counts, const double* preference,
                         ModelTrace* trace) const;

  ModelConfig config_;
  std::vector<Layer> layers_;
  BlockId embed_, final_norm_, lm_head_;
  at::Tensor rotary_;  // [context, 2, head_width / 2]
};

}  // namespace spes::trainer
