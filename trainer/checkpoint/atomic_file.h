// A file that is there whole or not at all.
#pragma once

#include <cstddef>
#include <string>

namespace spes::trainer {

// Writes `path`.tmp beside the target; Commit syncs it, renames it to `path` and syncs the folder.
// Without Commit the target stays as it was and the temporary file goes. One writer per path. All
// functions throw std::runtime_error, one line that names the path and the cause.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void Write(const void* data, std::size_t bytes);
  void Commit();

 private:
  [[noreturn]] void Fail() const;  // with errno

  std::string path_, temporary_;
  int fd_ = -1;
};

}  // namespace spes::trainer
