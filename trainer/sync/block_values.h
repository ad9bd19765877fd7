// A block's values without the padding between its parts.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>

#include "trainer/sync/block_table.h"

namespace spes::trainer {

// A block's values one behind the other. T may be const. Where the buffer has no padding they are
// the buffer's own; otherwise they are copied from it, and Store copies them back.
template <class T>
class BlockValues {
 public:
  using Value = std::remove_const_t<T>;
  using BufferOf = std::conditional_t<std::is_const_v<T>, const Buffer, Buffer>;

  BlockValues(const BlockSpec& block, BufferOf& buffer)
      : block_(block), all_(buffer.template as<Value>()) {
    if (block.elements == block.buffer_elements) {
      values_ = all_;
      return;
    }
    copy_ = std::make_unique_for_overwrite<Value[]>(static_cast<std::size_t>(block.elements));
    values_ = {copy_.get(), static_cast<std::size_t>(block.elements)};
    ForEachPart([](std::span<T> part, Value* value) { std::ranges::copy(part, value); });
  }

  std::span<T> span() const { return values_; }

  void Store() const {
    if (!copy_) return;
    ForEachPart(
        [](std::span<T> part, Value* value) { std::copy_n(value, part.size(), part.data()); });
  }

 private:
  template <class F>
  void ForEachPart(F f) const {
    Value* value = copy_.get();
    for (const BlockPart& part : block_.parts) {
      const auto size = static_cast<std::size_t>(part.elements);
      f(all_.subspan(static_cast<std::size_t>(part.offset), size), value);
      value += size;
    }
  }

  const BlockSpec& block_;
  std::span<T> all_;
  std::unique_ptr<Value[]> copy_;
  std::span<T> values_;
};

// Calls f(first byte, bytes) of every part.
template <class F>
void ForEachPartBytes(const BlockSpec& block, DType dtype, F f) {
  const std::int64_t size = ElementBytes(dtype);
  for (const BlockPart& part : block.parts) {
    f(part.offset * size, static_cast<std::size_t>(part.elements * size));
  }
}

inline bool SameValues(const BlockSpec& block, DType dtype, const Buffer& a, const Buffer& b) {
  bool same = true;
  ForEachPartBytes(block, dtype, [&](std::int64_t at, std::size_t bytes) {
    same = same && std::memcmp(a.data() + at, b.data() + at, bytes) == 0;
  });
  return same;
}

// Without what lies in the padding.
inline SharedBuffer CopyOfParts(const BlockSpec& block, DType dtype, const Buffer& buffer,
                                const Allocate& allocate = {}) {
  auto copy = std::make_shared<Buffer>(Allocated(allocate, buffer.bytes()));
  ForEachPartBytes(block, dtype, [&](std::int64_t at, std::size_t bytes) {
    std::memcpy(copy->data() + at, buffer.data() + at, bytes);
  });
  return copy;
}

inline bool HasZeroPadding(const BlockSpec& block, DType dtype, const Buffer& buffer) {
  std::int64_t end = 0;
  bool zero = true;
  const auto check = [&](std::int64_t until) {
    for (; end < until; ++end) zero = zero && buffer.data()[end] == std::byte{0};
  };
  ForEachPartBytes(block, dtype, [&](std::int64_t at, std::size_t bytes) {
    check(at);
    end = at + static_cast<std::int64_t>(bytes);
  });
  check(buffer.bytes());
  return zero;
}

}  // namespace spes::trainer
