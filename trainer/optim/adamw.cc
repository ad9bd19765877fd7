#include "trainer/optim/adamw.h"

#include <algorithm>
#include <cmath>

#include "trainer/model/vector_math.h"

namespace spes::trainer {

namespace {

template <class T>
void Update(const OptimizerConfig& config, double lr, double factor, const T* __restrict gradient,
            std::int64_t n, double updates, T* __restrict w, T* __restrict m, T* __restrict v) {
  const T b1 = static_cast<T>(config.beta1), c1 = static_cast<T>(1 - config.beta1);
  const T b2 = static_cast<T>(config.beta2), c2 = static_cast<T>(1 - config.beta2);
  const T step = static_cast<T>(lr / (1 - std::pow(config.beta1, updates)));
  const T root = static_cast<T>(1 / std::sqrt(1 - std::pow(config.beta2, updates)));
  const T keep = static_cast<T>(1 - lr * config.weight_decay);
  const T scale = static_cast<T>(factor), eps = static_cast<T>(config.eps);
  for (std::int64_t i = 0; i < n; ++i) {
    const T g = gradient[i] * scale;
    m[i] = b1 * m[i] + c1 * g;
    v[i] = b2 * v[i] + c2 * g * g;
    w[i] = keep * w[i] - step * m[i] / (std::sqrt(v[i]) * root + eps);
  }
}

}  // namespace

double SquaredNorm(DType type, const void* gradient, std::int64_t elements) {
  if (type == DType::kFloat64) {
    const double* g = static_cast<const double*>(gradient);
    return Dot(g, g, elements);
  }
  const float* g = static_cast<const float*>(gradient);
  return static_cast<double>(Dot(g, g, elements));
}

double ClipFactor(const OptimizerConfig& config, double norm) {
  return config.clip_norm > 0 ? std::min(1.0, config.clip_norm / (norm + 1e-6)) : 1.0;
}

void AdamWUpdate(const OptimizerConfig& config, double lr, double factor, DType type,
                 const void* gradient, std::int64_t elements, Buffer& values,
                 AdamMoments& moments) {
  AdamWUpdate(config, lr, factor, type, gradient, elements, ++moments.updates, values.data(),
              moments.first.data(), moments.second.data());
}

void AdamWUpdate(const OptimizerConfig& config, double lr, double factor, DType type,
                 const void* gradient, std::int64_t elements, std::int64_t updates, void* values,
                 void* first, void* second) {
  const double count = static_cast<double>(updates);
  if (type == DType::kFloat32) {
    Update(config, lr, factor, static_cast<const float*>(gradient), elements, count,
           static_cast<float*>(values), static_cast<float*>(first), static_cast<float*>(second));
  } else {
    Update(config, lr, factor, static_cast<const double*>(gradient), elements, count,
           static_cast<double*>(values), static_cast<double*>(first), static_cast<double*>(second));
  }
}

}  // namespace spes::trainer
