// A sequence of bytes that lies in several places.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace spes::trainer {

// Byte is std::byte or const std::byte. Does not own what it points to.
template <class Byte>
class Pieces {
 public:
  explicit Pieces(std::vector<std::span<Byte>> pieces) : pieces_(std::move(pieces)) {
    starts_.reserve(pieces_.size());
    for (const auto piece : pieces_) {
      starts_.push_back(bytes_);
      bytes_ += static_cast<std::int64_t>(piece.size());
    }
  }

  std::int64_t bytes() const { return bytes_; }

  // `bytes` from `offset` on, which must be there.
  std::vector<std::span<Byte>> Slice(std::int64_t offset, std::int64_t bytes) const {
    std::vector<std::span<Byte>> slice;
    // The last piece that begins at or before the offset.
    auto i = static_cast<std::size_t>(std::ranges::upper_bound(starts_, offset) - starts_.begin());
    for (--i; bytes > 0; ++i) {
      const auto skip = static_cast<std::size_t>(offset - starts_[i]);
      const auto size = std::min(pieces_[i].size() - skip, static_cast<std::size_t>(bytes));
      if (size > 0) slice.push_back(pieces_[i].subspan(skip, size));
      offset += static_cast<std::int64_t>(size);
      bytes -= static_cast<std::int64_t>(size);
    }
    return slice;
  }

 private:
  std::vector<std::span<Byte>> pieces_;
  std::vector<std::int64_t> starts_;  // [piece]
  std::int64_t bytes_ = 0;
};

// How many chunks a payload is cut into, and how long each is.
struct ChunkGrid {
  std::int64_t payload_bytes = 0;
  std::int64_t chunk_bytes = 1;

  std::uint32_t count() const {
    return static_cast<std::uint32_t>((payload_bytes + chunk_bytes - 1) / chunk_bytes);
  }
  std::int64_t offset(std::uint32_t chunk) const { return chunk * chunk_bytes; }
  std::int64_t bytes(std::uint32_t chunk) const {
    return std::min(chunk_bytes, payload_bytes - offset(chunk));
  }
};

}  // namespace spes::trainer
