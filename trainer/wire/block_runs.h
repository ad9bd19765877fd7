// Where a block's values lie in its buffer.
#pragma once

#include <cstdint>

#include "trainer/sync/block_table.h"

namespace spes::trainer {

// Calls f(offset, bytes), both in bytes, for each run of values without padding in between, in
// order; never for an empty one.
template <class F>
void ForEachRun(const BlockSpec& spec, DType dtype, F f) {
  const std::int64_t size = ElementBytes(dtype);
  std::int64_t begin = 0, end = 0;
  for (const BlockPart& part : spec.parts) {
    if (part.offset * size != end) {
      if (end > begin) f(begin, end - begin);
      begin = part.offset * size;
    }
    end = (part.offset + part.elements) * size;
  }
  if (end > begin) f(begin, end - begin);
}

}  // namespace spes::trainer
