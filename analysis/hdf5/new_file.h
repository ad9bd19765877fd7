// A file that appears at its path only when it is ready, and space on its disk.
#pragma once

#include <cstdint>
#include <string>

namespace spes::analysis {

// Creates an empty temporary file beside `path`; removes it again unless MoveIntoPlace was called.
// Throws std::invalid_argument, one line, when `path` cannot be written there; std::runtime_error
// when the disk is full.
class NewFile {
 public:
  explicit NewFile(const std::string& path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  const std::string& temporary_path() const { return temporary_; }
  // Atomically replaces what is at the path. Throws std::runtime_error.
  void MoveIntoPlace();

 private:
  std::string path_, temporary_;
};

// Takes disk space for the file's bytes up to `end`, of which those before `from` are taken
// already, without changing its size. Returns up to where they now are (≥ end). Throws
// std::system_error when the disk, a quota or a limit on file sizes does not allow it; file systems
// that cannot promise space let it pass.
std::uint64_t ReserveSpace(int descriptor, std::uint64_t from, std::uint64_t end);

}  // namespace spes::analysis
