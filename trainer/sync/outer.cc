#include "trainer/sync/outer.h"

#include <fmt/format.h>

#include <cmath>
#include <span>
#include <stdexcept>
#include <utility>

namespace spes::trainer {

namespace {

template <class T>
SharedBuffer Stepped(const OuterConfig& config, const Buffer& world, const Buffer& reduced,
                     Buffer& velocity) {
  auto result = std::make_shared<Buffer>(world.bytes());
  const std::span<const T> old = world.as<T>(), mean = reduced.as<T>();
  const std::span<T> v = velocity.as<T>(), out = result->as<T>();
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double w = static_cast<double>(old[i]), delta = w - static_cast<double>(mean[i]);
    v[i] = static_cast<T>(config.momentum * static_cast<double>(v[i]) + delta);
    out[i] = static_cast<T>(w - config.lr * (delta + config.momentum * static_cast<double>(v[i])));
  }
  return result;
}

}  // namespace

void Validate(const OuterConfig& config) {
  if (!(config.lr > 0) || !std::isfinite(config.lr)) {
    throw std::invalid_argument(
        fmt::format("an outer learning rate of {}: it must be more than 0", config.lr));
  }
  if (!(config.momentum >= 0 && config.momentum < 1)) {
    throw std::invalid_argument(fmt::format(
        "an outer momentum of {}: it must be at least 0 and less than 1", config.momentum));
  }
}

OuterOptimizer::OuterOptimizer(std::shared_ptr<const BlockTable> table)
    : table_(std::move(table)), velocity_(static_cast<std::size_t>(table_->size())) {}

SharedBuffer OuterOptimizer::Step(const OuterConfig& config, BlockId id, const Buffer& world,
                                  const Buffer& reduced) {
  std::shared_ptr<Buffer>& velocity = velocity_[static_cast<std::size_t>(id)];
  if (!velocity) velocity = std::make_shared<Buffer>(table_->Allocate(id));
  for (const Buffer* buffer : {&world, &reduced}) {
    if (buffer->bytes() == velocity->bytes()) continue;
    throw std::invalid_argument(fmt::format("{} has {} bytes, but its values have {}",
                                            (*table_)[id].parts.front().name, velocity->bytes(),
                                            buffer->bytes()));
  }
  return (table_->dtype() == DType::kFloat32 ? Stepped<float>
                                             : Stepped<double>)(config, world, reduced, *velocity);
}

std::int64_t OuterOptimizer::StateBytes() const {
  std::int64_t bytes = 0;
  for (const auto& velocity : velocity_) bytes += velocity ? velocity->bytes() : 0;
  return bytes;
}

}  // namespace spes::trainer
