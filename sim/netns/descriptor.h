// A file descriptor that closes itself, and system errors as exceptions.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

namespace spes::sim {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }

  int get() const { return fd_; }
  // To somebody else who will close it.
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

// The result of a system call. Throws std::system_error, a std::runtime_error, with `what` and the
// reason when it is negative.
template <typename Result>
Result Check(Result result, const std::string& what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

}  // namespace spes::sim
