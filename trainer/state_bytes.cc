#include "trainer/state_bytes.h"

namespace spes::trainer {

void StateBytes::Add(std::string text) {
  const auto kept = std::make_shared<const std::string>(std::move(text));
  Add(std::as_bytes(std::span(*kept)), kept);
}

void StateBytes::Add(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  if (bytes.empty()) return;
  size_ += bytes.size();
  pieces_.push_back({bytes, std::move(owner)});
}

void StateBytes::Add(const StateBytes& other) {
  for (const Piece& piece : other.pieces_) Add(piece.bytes, piece.owner);
}

std::string StateBytes::Text() const {
  std::string text;
  text.reserve(size_);
  ForEach([&text](std::span<const std::byte> bytes) {
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  return text;
}

}  // namespace spes::trainer
