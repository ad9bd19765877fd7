// The sizes and options of a model, and the blocks that they imply. No LibTorch here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "trainer/sync/block_table.h"

namespace spes::trainer {

enum class QkNorm { kNone, kFull, kHead };

// What matrix products are computed in: the model's own type, or bfloat16 with parameters,
// gradients and all statistics in the model's own, which is float32 then.
enum class ComputeType { kModel, kBFloat16 };

// A pre-norm decoder like OLMoE; one docstring per field is in scenarios/describe.
struct ModelConfig {
  std::int64_t vocabulary = 256;    // V
  int layers = 4;                   // L
  std::int64_t width = 128;         // D
  int heads = 4;                    // query heads
  int kv_heads = 4;                 // key and value heads; divides `heads`
  std::int64_t head_width = 0;      // 0: width / heads
  int experts = 16;                 // E per layer; 0: dense layers
  int experts_per_token = 2;        // K
  std::int64_t expert_width = 128;  // F (of the dense layer where experts = 0)
  QkNorm qk_norm = QkNorm::kFull;
  bool renormalise_top_k = false;
  double rope_theta = 10000;
  double norm_eps = 1e-6;
  double init_std = 0.02;  // truncated at 3 standard deviations
  double z_loss = 1e-4;
  double load_balance_loss = 0.01;
  double router_z_loss = 0.001;
  DType dtype = DType::kFloat32;

  std::int64_t HeadWidth() const { return head_width > 0 ? head_width : width / heads; }
};

// Throws std::invalid_argument, one line, on sizes that do not fit together.
void Validate(const ModelConfig& config);

// Blocks in stable order: embed, per layer {attn_norm, q, k, v, q_norm, k_norm, o, ffn_norm, router
// or the dense w1, v1, w2; then its experts}, final_norm, lm_head. Shared blocks hold one tensor
// each. Part names: "embed", "layers.0.q", "layers.0.router", "layers.0.experts.3.w1" ([F, D], so
// are v1 and w2), dense layers "layers.0.w1".
std::shared_ptr<const BlockTable> MakeBlockTable(const ModelConfig& config);

// Parameters that one token passes through: all shared ones and K experts per layer.
std::int64_t ActiveElements(const ModelConfig& config);

// Elements that the forward pass of `tokens` tokens keeps for the backward pass, and the largest
// ones that this adds: per token and layer four hidden states, queries, keys and values (and two of
// them once more turned), attention's output, the router's probabilities and two inner states for
// each of the token's experts; and the logits with their gradient.
std::int64_t ActivationElements(const ModelConfig& config, std::int64_t tokens);

// Floating-point operations of one training step (forward and backward) per token of a sequence of
// `context` tokens: 2 per element of the active matrices for the product itself, 2 for the gradient
// of its input, 2 for the gradient of the matrix, and attention's 12·L·heads·head_width·context/2.
// `trainable_experts`: the share of the experts that the node trains; the others need no gradient
// of their matrices (routing taken as even).
double TrainingFlopsPerToken(const ModelConfig& config, std::int64_t context,
                             double trainable_experts = 1);

}  // namespace spes::trainer
