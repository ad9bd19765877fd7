#include "trainer/sync/world.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <cmath>
#include <stdexcept>

namespace spes::trainer {

namespace {

// Calls f(pointer, bytes) for each part of the block: its values without the padding.
template <class F>
void ForEachPart(const BlockSpec& spec, DType dtype, const Buffer& data, F f) {
  const std::int64_t size = ElementBytes(dtype);
  if (data.bytes() != spec.buffer_elements * size) {
    throw std::invalid_argument("a block's buffer has " + std::to_string(data.bytes()) +
                                " bytes, its description " +
                                std::to_string(spec.buffer_elements * size));
  }
  for (const BlockPart& part : spec.parts) {
    f(data.data() + part.offset * size, static_cast<std::size_t>(part.elements * size));
  }
}

struct FreeState {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};
using HashState = std::unique_ptr<XXH3_state_t, FreeState>;

template <class T>
bool Finite(const Buffer& data) {
  // x · 0 is 0 exactly for finite x and NaN otherwise; a sum of such terms vectorises.
  T sum = 0;
  for (const T x : data.as<T>()) sum += x * T{0};
  return sum == T{0};
}

template <class T>
bool Within(const Buffer& data, T lowest, T highest) {
  // A count without branches vectorises.
  std::uint64_t outside = 0;
  for (const T x : data.as<T>()) outside += !(x >= lowest && x <= highest);
  return outside == 0;
}

}  // namespace

std::string WorldHash(const World& world) {
  const HashState state(XXH3_createState());
  XXH3_128bits_reset(state.get());
  for (BlockId id = 0; id < world.table->size(); ++id) {
    ForEachPart((*world.table)[id], world.table->dtype(),
                *world.blocks[static_cast<std::size_t>(id)].data,
                [&](const std::byte* p, std::size_t n) { XXH3_128bits_update(state.get(), p, n); });
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::uint64_t BlockChecksum(const BlockSpec& spec, DType dtype, const Buffer& data) {
  const HashState state(XXH3_createState());
  XXH3_64bits_reset(state.get());
  ForEachPart(spec, dtype, data,
              [&](const std::byte* p, std::size_t n) { XXH3_64bits_update(state.get(), p, n); });
  return XXH3_64bits_digest(state.get());
}

bool AllFinite(DType dtype, const Buffer& data) {
  return dtype == DType::kFloat32 ? Finite<float>(data) : Finite<double>(data);
}

bool AllWithin(DType dtype, const Buffer& data, double lowest, double highest) {
  return dtype == DType::kFloat32
             ? Within(data, static_cast<float>(lowest), static_cast<float>(highest))
             : Within(data, lowest, highest);
}

}  // namespace spes::trainer
