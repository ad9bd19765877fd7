// The type for what must not be rounded to 16 bits.
#pragma once

#include <ATen/core/Tensor.h>

namespace spes::trainer::aten {

// Statistics, softmaxes and losses of such values are computed in this type: float32 of bfloat16,
// otherwise the values' own.
inline at::ScalarType WideType(const at::Tensor& x) {
  return x.scalar_type() == at::kBFloat16 ? at::kFloat : x.scalar_type();
}
inline at::Tensor Wide(const at::Tensor& x) { return x.to(WideType(x)); }

}  // namespace spes::trainer::aten
