// Root-mean-square normalisation (arXiv 1910.07467).
#pragma once

#include <ATen/core/Tensor.h>

#include <cmath>
#include <cstdint>

#include "trainer/model/vector_math.h"

namespace spes::trainer {

// x [N, D], weight [D] → x · rsqrt(mean(x²) + eps) · weight [N, D].
at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double eps);

// x + y and its norm by `weight`, all [N, D], in one pass over memory: a residual connection and
// what reads it next.
struct SumAndNorm {
  at::Tensor sum, norm;
};
SumAndNorm AddRmsNorm(const at::Tensor& x, const at::Tensor& y, const at::Tensor& weight,
                      double eps);

// One row of n elements; returns rsqrt(mean(x²) + eps).
template <class T>
T NormaliseRow(const T* __restrict x, const T* __restrict weight, std::int64_t n, double eps,
               T* __restrict y) {
  const T scale = T{1} / std::sqrt(Dot(x, x, n) / static_cast<T>(n) + static_cast<T>(eps));
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * scale * weight[i];
  return scale;
}

// Its derivative: writes dx and adds to dweight unless that is null.
template <class T>
void NormaliseRowBackward(const T* __restrict dy, const T* __restrict x, const T* __restrict weight,
                          T scale, std::int64_t n, T* __restrict dx, T* __restrict dweight) {
  const T projection = Dot(dy, x, weight, n);
  const T along = projection * scale * scale * scale / static_cast<T>(n);
  if (dweight != nullptr) {
    for (std::int64_t i = 0; i < n; ++i) dweight[i] += dy[i] * (x[i] * scale);
  }
  for (std::int64_t i = 0; i < n; ++i) dx[i] = dy[i] * weight[i] * scale - x[i] * along;
}

}  // namespace spes::trainer
