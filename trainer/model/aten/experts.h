// The experts of one layer in LibTorch's operators: for tensors on any device, also of bfloat16.
#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/model/experts.h"

namespace spes::trainer::aten {

// As spes::trainer::MixExperts. x and the experts are of one type; the weights may be wider. Slots
// are gathered once, each expert's products are of its rows alone, and each token gathers its K
// results: no additions in an order that a device would choose.
at::Tensor MixExperts(const at::Tensor& x, const at::Tensor& weights, const Dispatch& dispatch,
                      at::TensorList experts, const ExpertLayout& layout);

}  // namespace spes::trainer::aten
