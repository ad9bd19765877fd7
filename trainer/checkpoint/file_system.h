// The system calls by which files come and go: one place, so that a test can have each of them
// fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace spes::trainer {

// As open, write, fsync, close, rename and unlink of POSIX: negative with errno set on failure.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  // A new file gets the mode 0666 less the umask.
  virtual int Open(const std::string& path, int flags);
  virtual std::int64_t Write(int file, const void* data, std::size_t bytes);
  virtual int Sync(int file);
  virtual int Close(int file);
  virtual int Rename(const std::string& from, const std::string& to);
  virtual int Remove(const std::string& path);

  // The machine's own.
  static FileSystem& Real();
};

// Makes durable which names have come and gone in this folder. False with errno set on failure.
bool SyncFolder(FileSystem& files, const std::string& folder);

}  // namespace spes::trainer
