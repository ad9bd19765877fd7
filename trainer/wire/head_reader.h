// A message's fields out of bytes that anyone may have made up.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "trainer/wire/message_codec.h"

namespace spes::trainer {

// What stands in the payload for one block.
struct BlockContent {
  std::optional<std::int64_t> code_bytes;  // nothing: its values
  std::optional<std::int64_t> updates;     // nothing: no moments
};

// Every function throws WireError, one line, on what no HeadWriter has written. What is allocated
// is in proportion to the head, whatever its numbers say.
class HeadReader {
 public:
  // All must outlive the reader.
  HeadReader(std::string_view head, const BlockTable& table, const WireLimits& limits);

  template <class T>
  void Number(T& value) {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
    std::memcpy(&value, Take(sizeof(value)).data(), sizeof(value));
  }
  template <class T>
  void Count(T& value) {
    Number(value);
    Require(value >= 0, "a number is below 0");
  }
  void Flag(bool& value);
  void Text(std::string& text);
  void Id(BlockId& id);

  // `item_bytes`: the fewest that an entry takes. Ids within one list must differ.
  template <class T, class F>
  void List(std::vector<T>& items, std::size_t most, std::size_t item_bytes, F f) {
    items.resize(Length(most, item_bytes));
    ++list_;
    for (T& item : items) f(item);
  }

  template <class Block>
  void Content(const Block& block) {
    ReadContent(block.id);
  }

  void Require(bool holds, const char* what) const {
    if (!holds) Fail(what);
  }
  void ExpectEnd() const { Require(rest_.empty(), "something follows its end"); }

  std::size_t blocks() const { return static_cast<std::size_t>(table_.size()); }
  std::size_t layers() const { return static_cast<std::size_t>(table_.layers()); }
  std::size_t experts() const { return static_cast<std::size_t>(table_.experts()); }
  std::size_t any_length() const { return static_cast<std::size_t>(limits_.list_length); }

  // Of the blocks so far, in their order.
  const std::vector<BlockContent>& contents() const { return contents_; }
  std::int64_t payload_bytes() const { return payload_bytes_; }

 private:
  [[noreturn]] void Fail(const char* what) const;
  std::string_view Take(std::size_t bytes);
  std::size_t Length(std::size_t most, std::size_t item_bytes);
  void ReadContent(BlockId id);
  void AddPayload(std::int64_t bytes);

  std::string_view rest_;
  const BlockTable& table_;
  const WireLimits& limits_;
  std::uint32_t list_ = 0;           // the number of the list that is being read
  std::vector<std::uint32_t> seen_;  // [block]: the last list that it was in
  std::vector<BlockContent> contents_;
  std::int64_t payload_bytes_ = 0;
};

}  // namespace spes::trainer
