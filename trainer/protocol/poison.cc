#include "trainer/protocol/poison.h"

#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <numbers>

#include "trainer/data/keyed_random.h"

namespace spes::trainer {

namespace {

// Standard normal, by Box and Muller (1958, doi:10.1214/aoms/1177706645).
double Normal(std::uint64_t key, std::uint64_t i) {
  const double radius = std::sqrt(-2 * std::log1p(-Uniform(key, 2 * i)));
  return radius * std::cos(2 * std::numbers::pi * Uniform(key, 2 * i + 1));
}

template <class T>
void Change(const PoisonConfig& config, std::uint64_t key, const BlockSpec& block,
            const Buffer* published, Buffer& values) {
  const auto x = values.as<T>();
  const T* base = published ? published->as<T>().data() : nullptr;
  const auto for_each = [&](auto f) {  // f(element, what the update is counted from)
    for (const BlockPart& part : block.parts) {
      for (std::int64_t j = part.offset; j < part.offset + part.elements; ++j) {
        const auto i = static_cast<std::size_t>(j);
        f(x[i], base ? static_cast<double>(base[i]) : 0.0);
      }
    }
  };
  switch (config.kind) {
    case PoisonKind::kNone:
    case PoisonKind::kStale:
      return;
    case PoisonKind::kNan:
      x[static_cast<std::size_t>(block.parts.front().offset)] = std::numeric_limits<T>::quiet_NaN();
      return;
    case PoisonKind::kScale:
    case PoisonKind::kSignFlip: {
      const double factor = config.kind == PoisonKind::kScale ? config.factor : -config.factor;
      return for_each([factor](T& value, double from) {
        value = static_cast<T>(from + factor * (static_cast<double>(value) - from));
      });
    }
    case PoisonKind::kNoise: {
      double square = 0;
      for_each([&](T& value, double from) {
        square += (static_cast<double>(value) - from) * (static_cast<double>(value) - from);
      });
      const double size = config.factor * std::sqrt(square / static_cast<double>(block.elements));
      std::uint64_t i = 0;
      return for_each([&](T& value, double) {
        value = static_cast<T>(static_cast<double>(value) + size * Normal(key, i++));
      });
    }
  }
}

}  // namespace

SharedBuffer Poisoned(const PoisonConfig& config, std::int32_t round, BlockId id,
                      const BlockTable& table, const SharedBuffer& own, const Buffer* published,
                      const SharedBuffer& start) {
  if (config.kind == PoisonKind::kNone || round <= config.after) return own;
  if (config.kind == PoisonKind::kStale) return start;
  auto values = std::make_shared<Buffer>(own->Clone());
  const std::uint64_t key = Key(config.seed, round, id);
  if (table.dtype() == DType::kFloat32) {
    Change<float>(config, key, table[id], published, *values);
  } else {
    Change<double>(config, key, table[id], published, *values);
  }
  return values;
}

}  // namespace spes::trainer
