#include "trainer/checkpoint/file_system.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace spes::trainer {

int FileSystem::Open(const std::string& path, int flags) { return open(path.c_str(), flags, 0666); }

std::int64_t FileSystem::Write(int file, const void* data, std::size_t bytes) {
  return write(file, data, bytes);
}

int FileSystem::Sync(int file) { return fsync(file); }

int FileSystem::Close(int file) { return close(file); }

int FileSystem::Rename(const std::string& from, const std::string& to) {
  return std::rename(from.c_str(), to.c_str());
}

int FileSystem::Remove(const std::string& path) { return unlink(path.c_str()); }

FileSystem& FileSystem::Real() {
  static FileSystem real;
  return real;
}

bool SyncFolder(FileSystem& files, const std::string& folder) {
  const int directory = files.Open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return false;
  const int synced = files.Sync(directory);
  const int error = errno;
  files.Close(directory);
  errno = error;
  // EINVAL: the file system has no such operation.
  return synced == 0 || error == EINVAL;
}

}  // namespace spes::trainer
