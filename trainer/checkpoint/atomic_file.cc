#include "trainer/checkpoint/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <utility>

namespace spes::trainer {

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), temporary_(path_ + ".tmp") {
  fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) Fail();
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(temporary_.c_str());
}

void AtomicFile::Fail() const {
  throw std::runtime_error(path_ + ": cannot be written: " + std::strerror(errno));
}

void AtomicFile::Write(const void* data, std::size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = write(fd_, at, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) Fail();
    at += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

void AtomicFile::Commit() {
  if (fsync(fd_) != 0 || std::rename(temporary_.c_str(), path_.c_str()) != 0) Fail();
  // From here on the file is in place. Some file systems report a full disk only now.
  const int closed = close(std::exchange(fd_, -1));
  if (closed != 0) Fail();
  const std::filesystem::path folder = std::filesystem::absolute(path_).parent_path();
  const int directory = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) Fail();
  const int synced = fsync(directory);
  const int error = errno;
  close(directory);
  errno = error;
  // EINVAL: the file system has no such operation.
  if (synced != 0 && errno != EINVAL) Fail();
}

}  // namespace spes::trainer
