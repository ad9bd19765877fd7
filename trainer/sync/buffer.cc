#include "trainer/sync/buffer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

namespace spes::trainer {

namespace {
constexpr std::size_t kAlignment = 64;
}

Buffer::Buffer(std::int64_t bytes) : bytes_(bytes) {
  // aligned_alloc wants a multiple of the alignment, and a size of 0 may give a null pointer.
  const std::size_t padded = std::max<std::size_t>(
      kAlignment, (static_cast<std::size_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment);
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, padded)));
  if (!data_) throw std::bad_alloc();
  std::memset(data_.get(), 0, padded);
}

Buffer::Buffer(std::byte* data, std::int64_t bytes, std::shared_ptr<void> owner)
    : data_(data, Free{std::move(owner)}), bytes_(bytes) {}

void Buffer::Free::operator()(std::byte* p) const {
  if (!owner) std::free(p);
}

Buffer Buffer::Clone() const {
  Buffer copy(bytes_);
  std::memcpy(copy.data(), data(), static_cast<std::size_t>(bytes_));
  return copy;
}

Buffer Allocated(const Allocate& allocate, std::int64_t bytes) {
  if (!allocate) return Buffer(bytes);
  Buffer buffer = allocate(bytes);
  if (buffer.bytes() != bytes) throw std::logic_error("memory of another size than asked for");
  return buffer;
}

}  // namespace spes::trainer
