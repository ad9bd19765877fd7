// The saved state of a node as bytes: fields one behind the other, with a checksum.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "trainer/state_bytes.h"
#include "trainer/sync/block_table.h"

namespace spes::trainer {

// Little-endian machines only, as everything here.
class StateWriter {
 public:
  StateWriter();
  template <class T>
  void Number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    text_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  // Length and content; copied.
  void Bytes(std::span<const std::byte> bytes);
  // The same, but they stay where they are, as in StateBytes::Add.
  void Bytes(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);
  void Bytes(const StateBytes& bytes);
  // The whole state, checksum appended.
  StateBytes Finish();

 private:
  void Flush();

  StateBytes bytes_;
  std::string text_;  // behind them
};

// Reads what StateWriter wrote. Every function throws std::invalid_argument, one line, where the
// text is not such a state.
class StateReader {
 public:
  // Checks the mark at the start and the checksum of the whole. `text` must outlive the reader.
  explicit StateReader(std::string_view text);
  template <class T>
  T Number() {
    static_assert(std::is_arithmetic_v<T>);
    T value;
    std::memcpy(&value, Take(sizeof(value)).data(), sizeof(value));
    return value;
  }
  std::string_view Bytes();
  // Throws unless everything has been read.
  void ExpectEnd() const;

 private:
  std::string_view Take(std::uint64_t bytes);
  std::string_view rest_;
};

// A node's state as it was read, its bytes still in the text.
struct SavedMoments {
  std::int64_t updates = 0;
  std::string_view first, second;
};
struct SavedNode {
  std::vector<std::pair<std::string_view, SavedMoments>> trained;  // [trainable]
  std::map<BlockId, SavedMoments> aside;  // of blocks that it has trained before
  std::string position;                   // of its data
};

// Throws std::invalid_argument, one line, on a state of other blocks than `trains`, of another
// element type, or with a block of another size.
SavedNode ParseNode(std::string_view text, const BlockTable& table,
                    const std::vector<BlockId>& trains);

}  // namespace spes::trainer
