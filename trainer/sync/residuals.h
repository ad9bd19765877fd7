// What coding has lost of each block so far, for error feedback.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "trainer/sync/codec.h"

namespace spes::trainer {

class Residuals {
 public:
  // Of block `id`, zero the first time; null where the codec keeps none.
  Buffer* Of(const CodecConfig& codec, const BlockTable& table, BlockId id) {
    if (!KeepsResidual(codec)) return nullptr;
    const auto found = buffers_.find(id);
    if (found != buffers_.end()) return &found->second;
    return &buffers_.emplace(id, table.Allocate(id)).first->second;
  }

  void Forget(BlockId id) { buffers_.erase(id); }
  // All but those of `ids`, ascending.
  void KeepOnly(const std::vector<BlockId>& ids) {
    std::erase_if(buffers_, [&](const auto& each) {
      return !std::binary_search(ids.begin(), ids.end(), each.first);
    });
  }

  std::int64_t Bytes() const {
    std::int64_t bytes = 0;
    for (const auto& [id, buffer] : buffers_) bytes += buffer.bytes();
    return bytes;
  }

 private:
  std::map<BlockId, Buffer> buffers_;
};

}  // namespace spes::trainer
