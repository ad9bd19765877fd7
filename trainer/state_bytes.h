// A saved state in pieces, most of which lie where they were.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace spes::trainer {

// Bytes that are written one piece behind the other: put together first, they would be there twice.
class StateBytes {
 public:
  StateBytes() = default;
  // Of one piece.
  template <std::convertible_to<std::string> T>
  StateBytes(T&& text) {  // NOLINT: whoever has a text has a state
    Add(std::string(std::forward<T>(text)));
  }

  void Add(std::string text);
  // `owner` keeps the bytes; where it is null, they must outlive this.
  void Add(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);
  void Add(const StateBytes& other);

  std::uint64_t size() const { return size_; }
  // Calls f(std::span<const std::byte>) of every piece, in order.
  template <class F>
  void ForEach(F f) const {
    for (const Piece& piece : pieces_) f(piece.bytes);
  }
  // All in one.
  std::string Text() const;

 private:
  struct Piece {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;
  };
  std::vector<Piece> pieces_;
  std::uint64_t size_ = 0;
};

}  // namespace spes::trainer
