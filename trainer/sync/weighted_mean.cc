#include "trainer/sync/weighted_mean.h"

#include <Eigen/Core>

namespace spes::trainer {

namespace {

template <class T>
using Array = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>, Eigen::Aligned64>;
template <class T>
using ConstArray = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>, Eigen::Aligned64>;

template <class T>
Array<T> AsArray(Buffer& b) {
  return {b.as<T>().data(), static_cast<Eigen::Index>(b.as<T>().size())};
}
template <class T>
ConstArray<T> AsArray(const Buffer& b) {
  return {b.as<T>().data(), static_cast<Eigen::Index>(b.as<T>().size())};
}

template <class T>
void AddScaled(Buffer& total, const Buffer& x, double weight) {
  AsArray<T>(total) += static_cast<T>(weight) * AsArray<T>(x);
}

template <class T>
void Divide(Buffer& total, double weight) {
  AsArray<T>(total) /= static_cast<T>(weight);
}

}  // namespace

void WeightedMean::Add(DType dtype, const SharedBuffer& x, double weight) {
  const auto add = dtype == DType::kFloat32 ? AddScaled<float> : AddScaled<double>;
  if (++count_ == 1) {
    single_ = x;
    weight_ = weight;
    return;
  }
  if (!total_) {
    total_ = std::make_unique<Buffer>(x->bytes());
    add(*total_, *single_, weight_);
    single_.reset();
  }
  weight_ += weight;
  add(*total_, *x, weight);
}

SharedBuffer WeightedMean::Finish(DType dtype) {
  if (single_) return std::move(single_);
  (dtype == DType::kFloat32 ? Divide<float> : Divide<double>)(*total_, weight_);
  return std::move(total_);
}

}  // namespace spes::trainer
