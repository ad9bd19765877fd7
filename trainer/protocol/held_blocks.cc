#include "trainer/protocol/held_blocks.h"

#include <algorithm>
#include <utility>

namespace spes::trainer {

HeldBlocks::HeldBlocks(std::vector<Version> held, Version newest) : held_(std::move(held)) {
  for (Version& version : held_) {
    if (version > newest) version = kNone;
  }
  base_ = held_;
}

void HeldBlocks::Trained(const std::vector<BlockId>& ids) {
  for (const BlockId id : ids) held_[static_cast<std::size_t>(id)] = kNone;
}

void HeldBlocks::Adopted(BlockId id, Version version) {
  held_[static_cast<std::size_t>(id)] = base_[static_cast<std::size_t>(id)] = version;
}

std::vector<SentBlock> HeldBlocks::TakeMissing(const Publication& published,
                                               const std::vector<BlockId>& trains) {
  std::vector<SentBlock> blocks;
  for (std::size_t i = 0; i < held_.size(); ++i) {
    const PublishedBlock& block = published.world.blocks[i];
    if (held_[i] == block.version) continue;
    const auto id = static_cast<BlockId>(i);
    SentBlock sent{id, block.version, block.data, nullptr, nullptr};
    const PublishedCode& code = published.codes[i];
    if (code.code && (!published.codes_need_base || base_[i] == code.from)) sent.code = code.code;
    if (published.moments[i] && std::binary_search(trains.begin(), trains.end(), id)) {
      sent.moments = published.moments[i];
    }
    blocks.push_back(std::move(sent));
    held_[i] = base_[i] = block.version;
  }
  return blocks;
}

}  // namespace spes::trainer
