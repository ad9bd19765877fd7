#include "trainer/sync/block_table.h"

#include <algorithm>
#include <utility>

namespace spes::trainer {

BlockTable::BlockTable(DType dtype, std::vector<BlockSpec> blocks)
    : dtype_(dtype), blocks_(std::move(blocks)) {
  for (const BlockSpec& block : blocks_) {
    layers_ = std::max(layers_, block.layer + 1);
    experts_ = std::max(experts_, block.expert + 1);
    total_elements_ += block.elements;
    if (block.kind == BlockKind::kShared) shared_elements_ += block.elements;
  }
  expert_index_.assign(static_cast<std::size_t>(layers_ * experts_), -1);
  for (BlockId id = 0; id < size(); ++id) {
    const BlockSpec& block = (*this)[id];
    if (block.kind == BlockKind::kExpert) {
      expert_index_[static_cast<std::size_t>(block.layer * experts_ + block.expert)] = id;
    }
    for (int part = 0; part < static_cast<int>(block.parts.size()); ++part) {
      parts_.emplace(block.parts[static_cast<std::size_t>(part)].name, PartRef{id, part});
    }
  }
}

std::optional<BlockId> BlockTable::Expert(int layer, int expert) const {
  if (layer < 0 || layer >= layers_ || expert < 0 || expert >= experts_) return std::nullopt;
  const BlockId id = expert_index_[static_cast<std::size_t>(layer * experts_ + expert)];
  if (id < 0) return std::nullopt;
  return id;
}

std::optional<BlockTable::PartRef> BlockTable::Find(std::string_view part_name) const {
  const auto found = parts_.find(part_name);
  if (found == parts_.end()) return std::nullopt;
  return found->second;
}

std::int64_t BlockTable::ExpertElements() const {
  std::int64_t elements = 0;
  for (int layer = 0; layer < layers_; ++layer) {
    if (const auto id = Expert(layer, 0)) elements += (*this)[*id].elements;
  }
  return elements;
}

Buffer BlockTable::Allocate(BlockId id) const {
  return Buffer((*this)[id].buffer_elements * ElementBytes(dtype_));
}

BlockSpec MakeBlock(DType dtype, BlockKind kind, int layer, int expert,
                    const std::vector<std::pair<std::string, std::vector<std::int64_t>>>& shapes) {
  BlockSpec block;
  block.kind = kind;
  block.layer = layer;
  block.expert = expert;
  const std::int64_t step = 64 / ElementBytes(dtype);
  for (const auto& [name, shape] : shapes) {
    BlockPart part;
    part.name = name;
    part.elements = 1;
    for (const std::int64_t n : shape) part.elements *= n;
    part.shape = shape;
    part.offset = block.buffer_elements;
    block.elements += part.elements;
    block.buffer_elements += (part.elements + step - 1) / step * step;
    block.parts.push_back(std::move(part));
  }
  return block;
}

}  // namespace spes::trainer
