// Blocks, values and settings that codecs are tested with.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/data/keyed_random.h"
#include "trainer/sync/codec.h"

namespace spes::trainer {

// A block with a part for each size, padded to 64 bytes where a size asks for it.
inline BlockSpec BlockOf(DType dtype, const std::vector<std::int64_t>& sizes) {
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> shapes;
  for (const std::int64_t n : sizes) shapes.push_back({"p" + std::to_string(shapes.size()), {n}});
  return MakeBlock(dtype, BlockKind::kShared, 0, -1, shapes);
}

inline Buffer ZeroBuffer(DType dtype, const BlockSpec& block) {
  return Buffer(block.buffer_elements * ElementBytes(dtype));
}

// Calls f(index without padding, index in the buffer).
template <class F>
void ForEachElement(const BlockSpec& block, F f) {
  std::size_t index = 0;
  for (const BlockPart& part : block.parts) {
    for (std::int64_t i = 0; i < part.elements; ++i) {
      f(index++, static_cast<std::size_t>(part.offset + i));
    }
  }
}

// Element i of the block is value(i); padding is zero.
template <class T>
SharedBuffer Filled(const BlockSpec& block, const std::function<T(std::size_t)>& value) {
  auto buffer = std::make_shared<Buffer>(block.buffer_elements * static_cast<int>(sizeof(T)));
  ForEachElement(block, [&](std::size_t i, std::size_t at) { buffer->as<T>()[at] = value(i); });
  return buffer;
}

// The values without padding.
template <class T>
std::vector<T> ValuesOf(const BlockSpec& block, const Buffer& buffer) {
  std::vector<T> values;
  ForEachElement(block, [&](std::size_t, std::size_t at) { values.push_back(buffer.as<T>()[at]); });
  return values;
}

inline bool SameBytes(const Buffer& a, const Buffer& b) {
  return a.bytes() == b.bytes() &&
         std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.bytes())) == 0;
}

// Between −1 and 1 × 2^(−spread to spread): the same bits everywhere.
template <class T>
T RandomValue(std::uint64_t key, std::uint64_t i, int spread) {
  const auto u = static_cast<T>(2 * Uniform(key, 2 * i) - 1);
  return std::ldexp(u, static_cast<int>(Key(key, 2 * i + 1) % (2 * spread + 1)) - spread);
}

// NaN with and without payload and sign, infinities, subnormal, extreme and zero values.
template <class T>
T SpecialValue(std::size_t i) {
  using L = std::numeric_limits<T>;
  const T values[] = {L::quiet_NaN(),  L::infinity(),    -L::infinity(),
                      L::denorm_min(), -L::denorm_min(), L::max(),
                      L::lowest(),     L::min(),         T{0},
                      -T{0},           -L::quiet_NaN(),  L::min() / 3};
  return values[i % std::size(values)];
}

// Mostly random values, now and then a special one.
template <class T>
SharedBuffer MixedBuffer(const BlockSpec& block, std::uint64_t key) {
  return Filled<T>(block, [&](std::size_t i) {
    const std::uint64_t draw = Key(key, i, 7);
    return draw % 16 == 0 ? SpecialValue<T>(draw >> 8) : RandomValue<T>(key, i, 8);
  });
}

template <class T>
SharedBuffer FiniteBuffer(const BlockSpec& block, std::uint64_t key, double size = 1) {
  return Filled<T>(block,
                   [&](std::size_t i) { return static_cast<T>(size) * RandomValue<T>(key, i, 3); });
}

// Every kind × differences × error feedback × skipping × compression.
inline std::vector<CodecConfig> AllConfigs() {
  std::vector<CodecConfig> configs;
  for (const int kind : {0, 1, 2, 3, 4}) {
    for (int options = 0; options < 16; ++options) {
      CodecConfig config;
      config.kind = static_cast<CodecKind>(kind);
      config.differences = (options & 1) != 0;
      config.error_feedback = (options & 2) != 0;
      config.skip_unchanged = (options & 4) != 0;
      config.zstd = (options & 8) != 0 ? 3 : 0;
      if (config.skip_unchanged && !config.differences) continue;
      if (config.kind == CodecKind::kInt8 || config.kind == CodecKind::kInt4) config.group = 7;
      if (config.kind == CodecKind::kTopK) config.keep = 0.2;
      configs.push_back(config);
    }
  }
  return configs;
}

inline std::string NameOf(const CodecConfig& c) {
  const char* kinds[] = {"raw", "bf16", "int8", "int4", "top-k"};
  return std::string(kinds[static_cast<int>(c.kind)]) + (c.differences ? " differences" : "") +
         (c.error_feedback ? " feedback" : "") + (c.skip_unchanged ? " skip" : "") +
         (c.zstd > 0 ? " zstd" : "");
}

inline std::vector<BlockSpec> SampleBlocks(DType dtype) {
  return {BlockOf(dtype, {}),         BlockOf(dtype, {0}),   BlockOf(dtype, {1}),
          BlockOf(dtype, {5, 17, 3}), BlockOf(dtype, {128}), BlockOf(dtype, {96, 200, 33})};
}

}  // namespace spes::trainer
