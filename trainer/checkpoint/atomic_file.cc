#include "trainer/checkpoint/atomic_file.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <utility>

namespace spes::trainer {

AtomicFile::AtomicFile(std::string path, FileSystem& files)
    : path_(std::move(path)), temporary_(path_ + ".tmp"), files_(files) {
  fd_ = files_.Open(temporary_, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC);
  if (fd_ < 0) Fail();
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) files_.Close(fd_);
  if (!renamed_) files_.Remove(temporary_);
}

void AtomicFile::Fail() const {
  throw std::runtime_error(path_ + ": cannot be written: " + std::strerror(errno));
}

void AtomicFile::Write(const void* data, std::size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const std::int64_t written = files_.Write(fd_, at, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) Fail();
    at += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

void AtomicFile::Commit() {
  // Some file systems report a full disk only when the file is synced or closed.
  if (files_.Sync(fd_) != 0 || files_.Close(std::exchange(fd_, -1)) != 0) Fail();
  if (files_.Rename(temporary_, path_) != 0) Fail();
  renamed_ = true;
  if (!SyncFolder(files_, std::filesystem::absolute(path_).parent_path())) Fail();
}

}  // namespace spes::trainer
