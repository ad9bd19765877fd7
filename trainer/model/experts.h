// The experts of one layer.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "trainer/model/router.h"

namespace spes::trainer {

// Where w1, v1 and w2 [F, D] lie in an expert's block.
struct ExpertLayout {
  std::int64_t width = 0, expert_width = 0;  // D, F
  std::int64_t w1 = 0, v1 = 0, w2 = 0;       // elements from the start of the block
};

// x [N, D], weights [N, K], experts: E whole blocks → Σ_k weight · (silu(x w1ᵀ) ⊙ (x v1ᵀ)) w2 over
// each token's K experts, [N, D]. Dropless. Gradients reach x and the weights through every expert;
// matrices get one only where the block wants it, zero where no token came.
at::Tensor MixExperts(const at::Tensor& x, const at::Tensor& weights, const Dispatch& dispatch,
                      at::TensorList experts, const ExpertLayout& layout);

}  // namespace spes::trainer
