// Blocks: the unit of ownership, transfer, reduction and merging.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/sync/buffer.h"

namespace spes::trainer {

using BlockId = std::int32_t;  // index into a BlockTable

// kShared: one tensor that every node trains. kExpert: one expert of one layer, w1, v1 and w2
// together.
enum class BlockKind { kShared, kExpert };

// One tensor inside a block's buffer.
struct BlockPart {
  std::string name;                 // as in a saved world: "layers.0.q", "layers.0.experts.3.w1"
  std::vector<std::int64_t> shape;  // row-major
  std::int64_t elements = 0;        // product of the shape
  std::int64_t offset = 0;          // elements from the start of the buffer; a multiple of 64 bytes
};

struct BlockSpec {
  BlockKind kind = BlockKind::kShared;
  int layer = -1;   // −1: outside the layers
  int expert = -1;  // −1: a shared block
  std::vector<BlockPart> parts;
  std::int64_t elements = 0;         // without padding: what is counted, sent and hashed
  std::int64_t buffer_elements = 0;  // with padding between parts; padding is always zero
};

// All blocks of a model in their stable order. Immutable once built.
class BlockTable {
 public:
  BlockTable(DType dtype, std::vector<BlockSpec> blocks);

  DType dtype() const { return dtype_; }
  int size() const { return static_cast<int>(blocks_.size()); }
  const BlockSpec& operator[](BlockId id) const { return blocks_[static_cast<std::size_t>(id)]; }
  auto begin() const { return blocks_.begin(); }
  auto end() const { return blocks_.end(); }

  int layers() const { return layers_; }    // decoder layers that hold experts or shared blocks
  int experts() const { return experts_; }  // experts per layer, 0 for a dense model

  // The block of expert `expert` in `layer`; nothing where that layer has no experts.
  std::optional<BlockId> Expert(int layer, int expert) const;
  // The block whose part has this name, and the index of the part.
  struct PartRef {
    BlockId block;
    int part;
  };
  std::optional<PartRef> Find(std::string_view part_name) const;

  // Elements of all blocks, of the shared ones, of one expert over all layers.
  std::int64_t TotalElements() const { return total_elements_; }
  std::int64_t SharedElements() const { return shared_elements_; }
  std::int64_t ExpertElements() const;

  // Payload bytes of a block: elements × element size, padding not counted.
  std::int64_t Bytes(BlockId id) const { return (*this)[id].elements * ElementBytes(dtype_); }
  // A zeroed buffer of the block's padded size.
  Buffer Allocate(BlockId id) const;

 private:
  DType dtype_;
  std::vector<BlockSpec> blocks_;
  std::vector<BlockId> expert_index_;  // [layer][expert], −1: none
  std::map<std::string, PartRef, std::less<>> parts_;
  int layers_ = 0, experts_ = 0;
  std::int64_t total_elements_ = 0, shared_elements_ = 0;
};

// Lays out `shapes` (name → shape) one behind the other in one buffer, each part aligned to 64
// bytes.
BlockSpec MakeBlock(DType dtype, BlockKind kind, int layer, int expert,
                    const std::vector<std::pair<std::string, std::vector<std::int64_t>>>& shapes);

}  // namespace spes::trainer
