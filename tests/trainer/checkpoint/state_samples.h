// Coordinator states with everything in them, and what tells two of them apart.
#pragma once

#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/data/keyed_random.h"
#include "trainer/protocol/coordinator_state.h"
#include "trainer/sync/block_values.h"

namespace spes::trainer {

// Two shared blocks and two experts whose parts leave padding between them.
inline std::shared_ptr<const BlockTable> StateTable(DType dtype, std::int64_t width = 3) {
  std::vector<BlockSpec> blocks;
  blocks.push_back(MakeBlock(dtype, BlockKind::kShared, -1, -1, {{"embed", {5, width}}}));
  for (int e = 0; e < 2; ++e) {
    const std::string name = "layers.0.experts." + std::to_string(e);
    blocks.push_back(MakeBlock(dtype, BlockKind::kExpert, 0, e,
                               {{name + ".w1", {2, width}}, {name + ".w2", {width, 2}}}));
  }
  blocks.push_back(MakeBlock(dtype, BlockKind::kShared, -1, -1, {{"final_norm", {width}}}));
  return std::make_shared<const BlockTable>(dtype, std::move(blocks));
}

// Any bits at all, NaNs with payloads and infinities among them; padding stays zero.
inline Buffer SampleBuffer(const BlockTable& table, BlockId id, std::uint64_t seed) {
  Buffer data = table.Allocate(id);
  std::uint64_t n = 0;
  ForEachPartBytes(table[id], table.dtype(), [&](std::int64_t at, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; i += 4) {
      auto bits = static_cast<std::uint32_t>(Key(seed, static_cast<std::uint64_t>(id), ++n));
      if (n % 7 == 0) bits = 0x7FC00000u | bits >> 12;  // a quiet NaN
      if (n % 11 == 0) bits = 0xFF800001u;              // a signalling one
      if (n % 13 == 0) bits = 0x7F800000u;              // infinity
      if (n % 17 == 0) bits = 0x80000000u;              // −0
      std::memcpy(data.data() + at + static_cast<std::int64_t>(i), &bits, 4);
    }
  });
  return data;
}

inline std::vector<double> OddNumbers() {
  using Limits = std::numeric_limits<double>;
  return {0.1,
          -0.0,
          Limits::denorm_min(),
          Limits::max(),
          -Limits::infinity(),
          std::bit_cast<double>(0x7FF8DEADBEEF0123u),
          std::bit_cast<double>(0xFFF0000000000001u)};
}

// Each field differs from its default and depends on `seed`.
inline CoordinatorState SampleState(const std::shared_ptr<const BlockTable>& table,
                                    std::int32_t round, std::uint64_t seed) {
  CoordinatorState state;
  state.scenario_hash = "scenario \"ä\"\n\\" + std::to_string(seed);
  state.run = Key(seed) | 1ULL << 63;
  state.round = round;
  state.step = (1LL << 62) + static_cast<std::int64_t>(seed);
  state.now_s = 0.1 * static_cast<double>(round) + 1e-17;
  state.up_bytes = 1'000'000'000'000 + round;
  state.down_bytes = 3'000'000'000'000 + round;
  state.initial_hash = "initial" + std::to_string(seed);
  state.world.table = table;
  const auto shared = [&](BlockId id, std::uint64_t kind) {
    return std::make_shared<Buffer>(SampleBuffer(*table, id, Key(seed, kind)));
  };
  for (BlockId id = 0; id < table->size(); ++id) {
    state.world.blocks.push_back(
        {static_cast<std::int32_t>(id % (std::int64_t{round} + 1)), shared(id, 0)});
    state.moments.push_back(id == 1 ? nullptr
                                    : std::make_shared<const BlockMoments>(
                                          BlockMoments{shared(id, 1), shared(id, 2), 100 + id}));
    state.updater.velocity.push_back(id == 2 ? nullptr : shared(id, 3));
    state.updater.adam.push_back(id == 3 ? nullptr
                                         : std::make_shared<AdamMoments>(AdamMoments{
                                               SampleBuffer(*table, id, Key(seed, 4)),
                                               SampleBuffer(*table, id, Key(seed, 5)), 1LL << 40}));
    if (id % 2 == 1) state.updater.residuals[id] = shared(id, 6);
    // Wide: round may be the largest there is.
    state.delivered.push_back(static_cast<std::int32_t>(round - id % (std::int64_t{round} + 1)));
  }
  state.allocation = {{0, 1, 3}, {}, {2}};
  state.nodes = {{"", true, false, 1LL << 40},
                 {"norm 3.1e4 is more than 8 times that of others\tä", false, false, 0},
                 {"", false, true, 0}};
  state.load = {std::bit_cast<double>(0x7FF8000000000042u), 12.5};
  state.norms = OddNumbers();
  return state;
}

inline bool SameBits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

// Padding included.
inline bool SameBytes(const Buffer* a, const Buffer* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a->bytes() == b->bytes() &&
         std::memcmp(a->data(), b->data(), static_cast<std::size_t>(a->bytes())) == 0;
}

template <class Moments>
const Buffer* First(const Moments& m) {
  if constexpr (std::is_same_v<Moments, SharedMoments>) {
    return m ? m->first.get() : nullptr;
  } else {
    return m ? &m->first : nullptr;
  }
}
template <class Moments>
const Buffer* Second(const Moments& m) {
  if constexpr (std::is_same_v<Moments, SharedMoments>) {
    return m ? m->second.get() : nullptr;
  } else {
    return m ? &m->second : nullptr;
  }
}
template <class Moments>
bool SameMoments(const std::vector<Moments>& a, const std::vector<Moments>& b) {
  bool same = a.size() == b.size();
  for (std::size_t i = 0; same && i < a.size(); ++i) {
    same = SameBytes(First(a[i]), First(b[i])) && SameBytes(Second(a[i]), Second(b[i])) &&
           (!a[i] || a[i]->updates == b[i]->updates);
  }
  return same;
}

// The first field in which they differ to the bit; empty where they are equal.
inline std::string Difference(const CoordinatorState& a, const CoordinatorState& b) {
  if (a.scenario_hash != b.scenario_hash) return "scenario_hash";
  if (a.run != b.run) return "run";
  if (a.round != b.round) return "round";
  if (a.step != b.step) return "step";
  if (!SameBits({a.now_s}, {b.now_s})) return "now_s";
  if (a.up_bytes != b.up_bytes) return "up_bytes";
  if (a.down_bytes != b.down_bytes) return "down_bytes";
  if (a.initial_hash != b.initial_hash) return "initial_hash";
  if (a.world.blocks.size() != b.world.blocks.size()) return "world";
  for (std::size_t i = 0; i < a.world.blocks.size(); ++i) {
    if (a.world.blocks[i].version != b.world.blocks[i].version) return "version";
    if (!SameBytes(a.world.blocks[i].data.get(), b.world.blocks[i].data.get())) return "world";
  }
  if (!SameMoments(a.moments, b.moments)) return "moments";
  if (!SameMoments(a.updater.adam, b.updater.adam)) return "adam";
  if (a.updater.velocity.size() != b.updater.velocity.size()) return "velocity";
  for (std::size_t i = 0; i < a.updater.velocity.size(); ++i) {
    if (!SameBytes(a.updater.velocity[i].get(), b.updater.velocity[i].get())) return "velocity";
  }
  if (a.updater.residuals.size() != b.updater.residuals.size()) return "residuals";
  for (const auto& [id, buffer] : a.updater.residuals) {
    const auto other = b.updater.residuals.find(id);
    if (other == b.updater.residuals.end() || !SameBytes(buffer.get(), other->second.get())) {
      return "residuals";
    }
  }
  if (a.allocation != b.allocation) return "allocation";
  if (a.nodes != b.nodes) return "nodes";
  if (!SameBits(a.load, b.load)) return "load";
  if (a.delivered != b.delivered) return "delivered";
  if (!SameBits(a.norms, b.norms)) return "norms";
  return "";
}

}  // namespace spes::trainer
