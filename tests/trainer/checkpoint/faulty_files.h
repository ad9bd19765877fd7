// System calls that fail when a test says so.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <string>

#include "trainer/checkpoint/file_system.h"

namespace spes::trainer {

class FaultyFiles : public FileSystem {
 public:
  // The calls with these numbers, from the first one on, fail with `error`, having done nothing but
  // close what was to be closed.
  int first = std::numeric_limits<int>::max(), count = 1;
  int error = EIO;
  // At most so many bytes go with one write.
  std::size_t most_bytes = std::numeric_limits<std::size_t>::max();
  int calls = 0;  // so far

  int Open(const std::string& path, int flags) override {
    return Fails() ? -1 : FileSystem::Open(path, flags);
  }
  std::int64_t Write(int file, const void* data, std::size_t bytes) override {
    return Fails() ? -1 : FileSystem::Write(file, data, std::min(bytes, most_bytes));
  }
  int Sync(int file) override { return Fails() ? -1 : FileSystem::Sync(file); }
  int Close(int file) override {
    const int closed = FileSystem::Close(file);
    return Fails() ? -1 : closed;
  }
  int Rename(const std::string& from, const std::string& to) override {
    return Fails() ? -1 : FileSystem::Rename(from, to);
  }
  int Remove(const std::string& path) override { return Fails() ? -1 : FileSystem::Remove(path); }

 private:
  bool Fails() {
    const int call = calls++;
    if (call < first || call - first >= count) return false;
    errno = error;
    return true;
  }
};

}  // namespace spes::trainer
