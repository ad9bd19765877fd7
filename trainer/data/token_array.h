// A long sequence of token ids, in memory or in files.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/data/config.h"

namespace spes::trainer {

// Immutable and thread-safe.
class TokenArray {
 public:
  virtual ~TokenArray() = default;
  virtual std::int64_t size() const = 0;
  // Ids first … first + count − 1 into `out`; the range must lie within 0 … size(). Throws
  // std::runtime_error when a file cannot be read or holds an id outside the vocabulary.
  virtual void Read(std::int64_t first, std::int64_t count, std::int32_t* out) const = 0;
};

// Ids in memory: of bytes as std::string or std::vector<std::uint8_t>, of larger vocabularies as
// std::vector<std::int32_t>.
template <class Container>
class MemoryTokens final : public TokenArray {
 public:
  explicit MemoryTokens(Container ids) : ids_(std::move(ids)) {}
  std::int64_t size() const override { return static_cast<std::int64_t>(ids_.size()); }
  void Read(std::int64_t first, std::int64_t count, std::int32_t* out) const override {
    assert(first >= 0 && count >= 0 && first + count <= size());
    for (std::int64_t i = 0; i < count; ++i) {
      const auto id = ids_[static_cast<std::size_t>(first + i)];
      // A char may be signed.
      out[i] = sizeof(id) == 1 ? static_cast<std::uint8_t>(id) : static_cast<std::int32_t>(id);
    }
  }

 private:
  Container ids_;
};

// Raw little-endian ids of several files as one array. Nothing is kept in memory: each Read opens
// the file, reads the range and closes it, so that any number of files of any size works and a file
// that shrinks meanwhile is an error, not a crash. `limit_tokens` > 0: only so many from the start.
// Throws std::invalid_argument, one line that names the file: absent, empty, a size that is no
// multiple of the element, a NumPy header instead of raw ids, an id ≥ vocabulary among the first
// or last 65,536 of a file (the rest is checked as it is read).
std::unique_ptr<TokenArray> OpenTokenFiles(const std::vector<std::string>& files, TokenType type,
                                           std::int64_t vocabulary, std::int64_t limit_tokens = 0);

}  // namespace spes::trainer
