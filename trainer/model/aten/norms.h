// Norms and rotary embedding in LibTorch's operators: for tensors on any device, also of bfloat16,
// whose statistics and angles are float32.
#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/model/config.h"
#include "trainer/model/rms_norm.h"

namespace spes::trainer::aten {

// As spes::trainer::RmsNorm, AddRmsNorm and NormaliseAndRotate; results are of x's type, weights
// and table of that in which statistics are computed.
at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double eps);
SumAndNorm AddRmsNorm(const at::Tensor& x, const at::Tensor& y, const at::Tensor& weight,
                      double eps);
at::Tensor NormaliseAndRotate(const at::Tensor& x, const at::Tensor& weight, QkNorm norm,
                              double eps, const at::Tensor& table);

}  // namespace spes::trainer::aten
