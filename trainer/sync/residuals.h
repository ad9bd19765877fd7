// What coding has lost of each block so far, for error feedback.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "trainer/sync/codec.h"

namespace spes::trainer {

class Residuals {
 public:
  // Of block `id`, zero the first time; null where the codec keeps none.
  Buffer* Of(const CodecConfig& codec, const BlockTable& table, BlockId id) {
    if (!KeepsResidual(codec)) return nullptr;
    std::shared_ptr<Buffer>& buffer = buffers_[id];
    if (!buffer) buffer = std::make_shared<Buffer>(table.Allocate(id));
    return buffer.get();
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
    for (const auto& [id, buffer] : buffers_) bytes += buffer->bytes();
    return bytes;
  }

  // All there are; shared, and written on by Of's callers.
  using Buffers = std::map<BlockId, std::shared_ptr<Buffer>>;
  const Buffers& all() const { return buffers_; }
  void Restore(Buffers buffers) { buffers_ = std::move(buffers); }

 private:
  Buffers buffers_;
};

}  // namespace spes::trainer
