// The safetensors file format: an 8-byte little-endian length, a JSON header of that length that
// maps each tensor's name to its type, shape and byte range, then the values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/sync/buffer.h"

namespace spes::trainer {

struct TensorInfo {
  std::string name;
  std::string dtype;                // as the format spells it: "F32", "F64", "BF16", …
  std::vector<std::int64_t> shape;  // row-major
  std::int64_t elements = 0;        // product of the shape
  std::int64_t offset = 0;          // bytes from the file's start
  std::int64_t bytes = 0;
};

// An open file whose header has been checked in full: every byte after the header belongs to
// exactly one tensor, and each tensor's bytes are its elements × the size of its type. Thread-safe.
class SafetensorsFile {
 public:
  // Throws std::invalid_argument, one line that names the file and what is wrong with it.
  explicit SafetensorsFile(std::string path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::string& path() const { return path_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // The header with the 8 bytes of its length, as they are in the file.
  std::string Header() const;
  // In the order of their bytes.
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  // Null when there is none of that name.
  const TensorInfo* Find(const std::string& name) const;

  // The tensor's `elements` values as `dtype` into `out`, converted where the file's type is the
  // other of F32 and F64 (to float32: nearest). Throws std::invalid_argument on any other type and
  // when the file cannot be read.
  void Read(const TensorInfo& tensor, DType dtype, std::byte* out) const;
  // The tensor's bytes as they are, whatever its type.
  void ReadRaw(const TensorInfo& tensor, std::byte* out) const;

 private:
  [[noreturn]] void Fail(const std::string& why) const;
  void ReadBytes(std::int64_t offset, std::int64_t bytes, void* out) const;
  void ParseHeader(std::string_view text, std::int64_t data_bytes);
  void CheckCover(std::int64_t data_bytes) const;

  std::string path_;
  int fd_ = -1;
  std::int64_t header_bytes_ = 0;
  std::map<std::string, std::string> metadata_;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, std::size_t> by_name_;
};

// Values that WriteSafetensors takes: row-major, contiguous.
struct TensorView {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> data;
};

// For messages: what a file says of itself may hold line breaks and be long.
std::string OneLine(std::string text);

// "[2, 3]", for messages.
std::string ShapeText(const std::vector<std::int64_t>& shape);

// "F32" or "F64".
const char* SafetensorsName(DType dtype);

// All that stands before the values, the length included, for tensors in this order; padded to a
// multiple of 8. Text that is not UTF-8 gets U+FFFD in the place of what is wrong.
std::string SafetensorsHeader(const std::map<std::string, std::string>& metadata,
                              std::span<const TensorView> tensors);

// Writes the tensors in this order straight from where they lie, atomically (AtomicFile). Throws
// std::runtime_error, one line.
void WriteSafetensors(const std::string& path, const std::map<std::string, std::string>& metadata,
                      std::span<const TensorView> tensors);

}  // namespace spes::trainer
