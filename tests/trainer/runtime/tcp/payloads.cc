#include "tests/trainer/runtime/tcp/payloads.h"

#include <string>
#include <utility>
#include <vector>

namespace spes::trainer {

namespace {

// The padding stays zero.
SharedBuffer Filled(const BlockTable& table, BlockId id, std::uint64_t seed) {
  auto buffer = std::make_shared<Buffer>(table.Allocate(id));
  std::uint64_t x = (seed + static_cast<std::uint64_t>(id)) * 0x9e3779b97f4a7c15U + 1;
  const auto words = buffer->as<std::uint32_t>();
  for (std::uint32_t& word : words.first(static_cast<std::size_t>(table[id].elements))) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    word = static_cast<std::uint32_t>(x);
  }
  return buffer;
}

}  // namespace

std::shared_ptr<const BlockTable> TableOf(int blocks, std::int64_t floats) {
  std::vector<BlockSpec> specs;
  for (int i = 0; i < blocks; ++i) {
    specs.push_back(MakeBlock(DType::kFloat32, BlockKind::kShared, -1, -1,
                              {{"block." + std::to_string(i), {floats}}}));
  }
  return std::make_shared<const BlockTable>(DType::kFloat32, std::move(specs));
}

Offer OfferOf(const BlockTable& table, std::int32_t round, std::uint64_t seed) {
  Offer offer;
  offer.span = {round, 1, 1};
  offer.tokens = 1;
  offer.steps.emplace_back();
  for (BlockId id = 0; id < table.size(); ++id) {
    OfferedBlock block;
    block.id = id;
    block.data = Filled(table, id, seed);
    offer.blocks.push_back(std::move(block));
  }
  return offer;
}

Update UpdateOf(const BlockTable& table, Version version, std::uint64_t seed) {
  Update update;
  update.version = version;
  for (BlockId id = 0; id < table.size(); ++id) {
    update.blocks.push_back({id, version, Filled(table, id, seed)});
  }
  return update;
}

}  // namespace spes::trainer
