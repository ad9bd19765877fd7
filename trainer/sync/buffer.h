// Aligned memory for parameters, without LibTorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace spes::trainer {

enum class DType { kFloat32, kFloat64 };

constexpr std::int64_t ElementBytes(DType t) { return t == DType::kFloat32 ? 4 : 8; }
constexpr const char* Name(DType t) { return t == DType::kFloat32 ? "float32" : "float64"; }

// `bytes` zero bytes, aligned to 64. Movable, not copyable by accident: Clone says so.
class Buffer {
 public:
  explicit Buffer(std::int64_t bytes);
  // `bytes` zero bytes at `data`, aligned to 64, which belong to `owner`; at least one where none
  // are asked for. They are not freed here: the owner is let go of instead.
  Buffer(std::byte* data, std::int64_t bytes, std::shared_ptr<void> owner);
  Buffer(Buffer&&) noexcept = default;
  Buffer& operator=(Buffer&&) noexcept = default;

  std::int64_t bytes() const { return bytes_; }
  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }

  // The whole buffer as elements of T.
  template <class T>
  std::span<T> as() {
    return {reinterpret_cast<T*>(data_.get()), static_cast<std::size_t>(bytes_) / sizeof(T)};
  }
  template <class T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(data_.get()), static_cast<std::size_t>(bytes_) / sizeof(T)};
  }

  Buffer Clone() const;

 private:
  struct Free {
    void operator()(std::byte* p) const;
    std::shared_ptr<void> owner;  // null: the C library's heap
  };
  std::unique_ptr<std::byte, Free> data_;
  std::int64_t bytes_ = 0;
};

// Memory that somebody else has: `bytes` zeroed ones. Empty: the C library's heap.
using Allocate = std::function<Buffer(std::int64_t bytes)>;
Buffer Allocated(const Allocate& allocate, std::int64_t bytes);

// A published value: never written again, shared by everyone who holds it.
using SharedBuffer = std::shared_ptr<const Buffer>;

}  // namespace spes::trainer
