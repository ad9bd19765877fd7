// The decoder: from tokens to the four losses.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trainer/model/config.h"
#include "trainer/model/operators.h"
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

// Where and in what a model computes.
struct ModelPlace {
  at::Device device = at::kCPU;
  ComputeType compute = ComputeType::kModel;
  // LibTorch's operators in host memory too, where those of trainer/model would do.
  bool library_operators = false;
};

// Holds no parameters. Immutable and thread-safe once built.
class Model {
 public:
  // For sequences of up to `context` tokens. `table` is MakeBlockTable(config).
  Model(const ModelConfig& config, std::shared_ptr<const BlockTable> table, std::int64_t context,
        const ModelPlace& place = {});

  // The type in which the model uses a block, and to which it converts a parameter of another one:
  // bfloat16 of the matrices of its products where it computes in that, otherwise the model's own.
  // Embedding, norms and router keep theirs: rows are looked up, statistics and the choice of
  // experts are not to be rounded so.
  at::ScalarType type(BlockId id) const;

  // tokens and targets [N] int32 in host memory, sequences of `context` tokens one behind the
  // other; parameters on the model's device, in the shapes of BlockTensor, by BlockId: those that
  // require a gradient get it from total.backward(), in their own type. `counts`, if given, has one
  // row per layer and is added to. `preference`, if given, is [L · E]: see RouterOptions. Throws
  // std::runtime_error on a token outside the vocabulary.
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

  // A parameter in the type in which products take it.
  at::Tensor Matrix(std::span<const at::Tensor> parameters, BlockId id) const;

  ModelConfig config_;
  const Operators& use_;
  at::ScalarType product_type_;    // of the matrices of products, and of what lies between them
  std::vector<bool> in_products_;  // by BlockId
  std::vector<Layer> layers_;
  BlockId embed_, final_norm_, lm_head_;
  at::Tensor rotary_;  // [context, 2, head_width / 2]
};

}  // namespace spes::trainer
