// The published model: for each block an immutable value and its version.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/sync/block_table.h"

namespace spes::trainer {

// The round that published a value; 0 is the initial model.
using Version = std::int32_t;

struct PublishedBlock {
  Version version = 0;
  SharedBuffer data;
};

// Optimiser moments of one block (AdamW), each of its padded size, and how many updates they have
// seen. Never written again.
struct BlockMoments {
  SharedBuffer first, second;
  std::int64_t updates = 0;
};
using SharedMoments = std::shared_ptr<const BlockMoments>;

// Copying a world copies pointers. Index: BlockId.
struct World {
  std::shared_ptr<const BlockTable> table;
  std::vector<PublishedBlock> blocks;
};

// XXH3-128 over each block's values in table order, padding left out, as 32 hexadecimal digits.
// Equal exactly when every parameter is equal to the bit.
std::string WorldHash(const World& world);

// XXH3-64 of one block's values, padding left out.
std::uint64_t BlockChecksum(const BlockSpec& spec, DType dtype, const Buffer& data);

// True when every value is finite.
bool AllFinite(DType dtype, const Buffer& data);

// Whether lowest ≤ x ≤ highest of every element, so that none is a NaN; padding counts.
bool AllWithin(DType dtype, const Buffer& data, double lowest, double highest);

}  // namespace spes::trainer
