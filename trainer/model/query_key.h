// What happens to queries and keys between their projection and the scores.
#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/model/config.h"

namespace spes::trainer {

// cos and sin of the rotary angles position · theta^(−2i/width), [context, 2, width/2]: for each
// position the cosines, then the sines. Computed in float64, stored as `type`.
at::Tensor RotaryTable(std::int64_t context, std::int64_t head_width, double theta,
                       at::ScalarType type);

// x [N, heads · width], its rows positions 0 … T−1 of one sequence after the other: QK-norm by
// `weight` over the whole row (kFull, [heads · width]) or over each head (kHead, [width]), then
// rotary embedding in the rotate-half convention (arXiv 2104.09864) by `table`, whose size says T.
at::Tensor NormaliseAndRotate(const at::Tensor& x, const at::Tensor& weight, QkNorm norm,
                              double eps, const at::Tensor& table);

}  // namespace spes::trainer
