// Products with weight matrices.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace spes::trainer {

// x [N, I] and up to a few weights [O, I] → x weightᵀ [N, O] each. Gradients are made of x and of
// those weights that want one.
std::vector<at::Tensor> Project(const at::Tensor& x, at::TensorList weights);

}  // namespace spes::trainer
