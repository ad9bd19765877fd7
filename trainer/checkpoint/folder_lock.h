// A folder for one process at a time.
#pragma once

#include <string>

namespace spes::trainer {

// Holds flock(2) on the file `.lock` in the folder as long as it lives, however the process ends.
// The file itself stays: it names the process that holds it, or the last one that did.
class FolderLock {
 public:
  // Does not wait. Throws std::runtime_error, one line that names the folder and the process that
  // has it, or why it cannot be locked.
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int file_;
};

}  // namespace spes::trainer
