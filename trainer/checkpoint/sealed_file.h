// A safetensors file in which no byte changes unnoticed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "trainer/checkpoint/file_system.h"
#include "trainer/checkpoint/safetensors.h"

namespace spes::trainer {

// A file is not what was once written: cut short, changed, or not readable to its end. One line.
class DamagedFile : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// As WriteSafetensors, atomically and straight from where the values lie, with two more entries in
// the metadata: `tensor_checksums`, the XXH3-64 of each tensor's values (16 hexadecimal digits, in
// the order of the tensors), and `header_checksum`, that of all that stands before the values, its
// own digits taken as zeros. Throws std::runtime_error, one line.
void WriteSealed(const std::string& path, std::map<std::string, std::string> metadata,
                 std::span<const TensorView> tensors, FileSystem& files = FileSystem::Real());

// Such a file, its header checked. What holds for SafetensorsFile holds here.
class SealedFile {
 public:
  // Throws DamagedFile; std::runtime_error, one line, where the file is absent or may not be read.
  explicit SealedFile(const std::string& path);

  const SafetensorsFile& contents() const { return file_; }

  // The bytes of one of `contents().tensors()`, as they were written. Throws DamagedFile.
  void Read(const TensorInfo& tensor, std::byte* out) const;

 private:
  void CheckHeader() const;

  SafetensorsFile file_;
  std::vector<std::uint64_t> checksums_;  // [tensor]
};

}  // namespace spes::trainer
