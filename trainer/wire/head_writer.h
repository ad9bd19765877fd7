// A message's fields as bytes, and where its payload lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "trainer/protocol/messages.h"
#include "trainer/wire/block_runs.h"
#include "trainer/wire/message_fields.h"

namespace spes::trainer {

// Everything throws std::invalid_argument, one line, on what no receiver would take.
class HeadWriter {
 public:
  // `table` must outlive the writer, the message what the payload points into.
  explicit HeadWriter(const BlockTable& table) : table_(table) {}

  template <class T>
  void Number(const T& value) {
    static_assert(std::is_arithmetic_v<T>);
    head_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  template <class T>
  void Count(const T& value) {
    Require(value >= 0, "a number below 0");
    Number(value);
  }
  void Flag(bool value) { Number(static_cast<std::uint8_t>(value)); }
  void Text(const std::string& text) {
    Length(text.size(), any_length());
    head_ += text;
  }
  void Id(BlockId id) {
    Require(id >= 0 && id < table_.size(), "a block that the model lacks");
    Number(id);
  }

  template <class T, class F>
  void List(std::vector<T>& items, std::size_t most, std::size_t /*item_bytes*/, F f) {
    Length(items.size(), most);
    for (T& item : items) f(item);
  }

  // The last word of a block's header, the updates that its moments have seen, and the payload.
  template <class Block>
  void Content(const Block& block) {
    const auto length =
        block.code ? block.code->size() : static_cast<std::uint64_t>(table_.Bytes(block.id));
    Number(length | ((block.code ? kHasCode : 0) | (block.moments ? kHasMoments : 0))
                        << kLengthBits);
    if (block.code) {
      Add(std::as_bytes(std::span(*block.code)));
    } else {
      Values(block.id, block.data);
    }
    if (!block.moments) return;
    Count(block.moments->updates);
    Values(block.id, block.moments->first);
    Values(block.id, block.moments->second);
  }

  void Require(bool holds, const char* what) const {
    if (!holds) throw std::invalid_argument(std::string("a message that cannot be sent: ") + what);
  }

  std::size_t blocks() const { return static_cast<std::size_t>(table_.size()); }
  std::size_t layers() const { return static_cast<std::size_t>(table_.layers()); }
  std::size_t experts() const { return static_cast<std::size_t>(table_.experts()); }
  std::size_t any_length() const { return std::numeric_limits<std::uint32_t>::max(); }

  std::string& head() { return head_; }
  std::vector<std::span<const std::byte>>& payload() { return payload_; }
  std::int64_t payload_bytes() const { return payload_bytes_; }

 private:
  void Length(std::size_t length, std::size_t most) {
    Require(length <= most, "a list with too many entries");
    Number(static_cast<std::uint32_t>(length));
  }
  void Add(std::span<const std::byte> piece) {
    if (piece.empty()) return;
    payload_.push_back(piece);
    payload_bytes_ += static_cast<std::int64_t>(piece.size());
  }
  void Values(BlockId id, const SharedBuffer& buffer) {
    Require(buffer && buffer->bytes() == table_[id].buffer_elements * ElementBytes(table_.dtype()),
            "a block without values, or with another's");
    ForEachRun(table_[id], table_.dtype(), [&](std::int64_t offset, std::int64_t bytes) {
      Add({buffer->data() + offset, static_cast<std::size_t>(bytes)});
    });
  }

  const BlockTable& table_;
  std::string head_;
  std::vector<std::span<const std::byte>> payload_;
  std::int64_t payload_bytes_ = 0;
};

}  // namespace spes::trainer
