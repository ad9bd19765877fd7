#include "trainer/model/initial_world.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cmath>
#include <numbers>
#include <utility>

#include "trainer/data/keyed_random.h"

namespace spes::trainer {

namespace {

// Standard normal draws, those beyond ±3 drawn again: Box and Muller's transform
// (doi:10.1214/aoms/1177706645) of a keyed counter. The standard library's distributions differ
// between implementations; this does not.
class TruncatedNormal {
 public:
  explicit TruncatedNormal(std::uint64_t key) : key_(key) {}

  double Next() {
    for (;;) {
      if (!has_spare_) Draw();
      has_spare_ = !has_spare_;
      const double z = has_spare_ ? first_ : second_;
      if (std::abs(z) <= 3) return z;
    }
  }

 private:
  void Draw() {
    const double u = 1 - Uniform(key_, counter_), v = Uniform(key_, counter_ + 1);
    counter_ += 2;
    const double radius = std::sqrt(-2 * std::log(u)), angle = 2 * std::numbers::pi * v;
    first_ = radius * std::cos(angle);
    second_ = radius * std::sin(angle);
  }

  std::uint64_t key_, counter_ = 0;
  double first_ = 0, second_ = 0;
  bool has_spare_ = false;  // `second_` has not been handed out yet
};

template <class T>
void Fill(const BlockPart& part, double std, std::uint64_t seed, Buffer& buffer) {
  const std::span<T> values = buffer.as<T>().subspan(static_cast<std::size_t>(part.offset),
                                                     static_cast<std::size_t>(part.elements));
  if (part.shape.size() == 1) {  // the weights of a norm
    for (T& x : values) x = T{1};
    return;
  }
  TruncatedNormal normal(Key(seed, XXH3_64bits(part.name.data(), part.name.size())));
  for (T& x : values) x = static_cast<T>(std * normal.Next());
}

}  // namespace

World MakeInitialWorld(const ModelConfig& config, std::shared_ptr<const BlockTable> table,
                       std::uint64_t seed) {
  World world;
  world.blocks.reserve(static_cast<std::size_t>(table->size()));
  for (BlockId id = 0; id < table->size(); ++id) {
    Buffer buffer = table->Allocate(id);
    for (const BlockPart& part : (*table)[id].parts) {
      if (table->dtype() == DType::kFloat32) {
        Fill<float>(part, config.init_std, seed, buffer);
      } else {
        Fill<double>(part, config.init_std, seed, buffer);
      }
    }
    world.blocks.push_back({0, std::make_shared<const Buffer>(std::move(buffer))});
  }
  world.table = std::move(table);
  return world;
}

}  // namespace spes::trainer
