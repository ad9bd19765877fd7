#include "trainer/checkpoint/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace spes::trainer {
namespace {

// What the lock's file says of who has it; empty when it has not come to write that down yet.
std::string Holder(int file) {
  char text[21] = {};
  const ssize_t bytes = pread(file, text, sizeof(text) - 1, 0);
  const std::string pid(text, static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
  const bool number =
      !pid.empty() && std::ranges::all_of(pid, [](unsigned char c) { return std::isdigit(c); });
  return number ? pid : "";
}

}  // namespace

FolderLock::FolderLock(const std::string& folder)
    : file_(open((folder + "/.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  const auto fail = [&](const std::string& why) {
    if (file_ >= 0) close(file_);
    throw std::runtime_error(folder + ": " + why);
  };
  if (file_ < 0) fail(std::string("cannot be locked: ") + std::strerror(errno));
  if (flock(file_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) fail(std::string("cannot be locked: ") + std::strerror(errno));
    const std::string pid = Holder(file_);
    fail(fmt::format("is in use by {}; end it, or take another folder",
                     pid.empty() ? "another process" : "process " + pid));
  }
  const std::string pid = std::to_string(getpid());
  // Only for whoever finds the folder taken: not being able to write it down is no reason to stop.
  if (ftruncate(file_, 0) == 0) (void)!pwrite(file_, pid.data(), pid.size(), 0);
}

FolderLock::~FolderLock() { close(file_); }

}  // namespace spes::trainer
