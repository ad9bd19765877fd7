// Fields of the frames that connections are let in with and kept by, as bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "trainer/wire/frame.h"

namespace spes::trainer {

// Of a reason, a line that a frame carries for people to read.
inline constexpr std::size_t kMaxReason = 512;

// Little-endian, as the machine is.
class ByteWriter {
 public:
  template <class T>
  ByteWriter& Number(T value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  template <std::size_t kSize>
  ByteWriter& Array(const std::array<std::byte, kSize>& value) {
    bytes_.append(reinterpret_cast<const char*>(value.data()), kSize);
    return *this;
  }
  ByteWriter& Text(std::string_view text) {
    Number(static_cast<std::uint32_t>(text.size()));
    bytes_ += text;
    return *this;
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Throws WireError on what is too short, or has bytes left over at End.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  T Number() {
    static_assert((std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) || std::is_enum_v<T>);
    T value;
    std::memcpy(&value, Take(sizeof(value)).data(), sizeof(value));
    return value;
  }
  template <std::size_t kSize>
  std::array<std::byte, kSize> Array() {
    std::array<std::byte, kSize> value;
    std::memcpy(value.data(), Take(kSize).data(), kSize);
    return value;
  }
  std::string Text() { return std::string(Take(Number<std::uint32_t>())); }
  void End() const {
    if (!rest_.empty()) throw WireError("a frame with more in it than its type has");
  }

 private:
  std::string_view Take(std::size_t bytes) {
    if (bytes > rest_.size()) throw WireError("a frame with less in it than its type has");
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }

  std::string_view rest_;
};

}  // namespace spes::trainer
