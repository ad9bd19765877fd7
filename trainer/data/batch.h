// What a training step eats, and where it comes from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace spes::trainer {

// `sequences` rows of `context` + 1 tokens, row-major: inputs are the first `context` of a row,
// targets the last `context`.
struct Batch {
  std::int64_t sequences = 0, context = 0;
  std::vector<std::int32_t> tokens;
};

// One node's endless stream of samples. Not thread-safe; a node uses its own.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // The next `sequences` samples. Throws std::runtime_error when the data cannot be read.
  virtual void Next(std::int64_t sequences, Batch& out) = 0;
  // The position, as a short opaque text; Seek(Position()) continues with the same samples. Throws
  // std::invalid_argument on a text of another source.
  virtual std::string Position() const = 0;
  virtual void Seek(const std::string& position) = 0;
};

}  // namespace spes::trainer
