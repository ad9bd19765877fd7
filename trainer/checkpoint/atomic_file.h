// A file that is there whole or not at all.
#pragma once

#include <cstddef>
#include <string>

#include "trainer/checkpoint/file_system.h"

namespace spes::trainer {

// Writes `path`.tmp beside the target; Commit syncs it, renames it to `path` and syncs the folder.
// Without Commit the target stays as it was and the temporary file goes. One writer per path. All
// functions throw std::runtime_error, one line that names the path and the cause. When it is the
// sync of the folder that fails, the new file is in place, whole, and only a power cut may still
// bring the old one back.
class AtomicFile {
 public:
  // `files` must outlive the file.
  explicit AtomicFile(std::string path, FileSystem& files = FileSystem::Real());
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void Write(const void* data, std::size_t bytes);
  void Commit();

 private:
  [[noreturn]] void Fail() const;  // with errno

  std::string path_, temporary_;
  FileSystem& files_;
  int fd_ = -1;
  bool renamed_ = false;
};

}  // namespace spes::trainer
