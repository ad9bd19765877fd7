#include "analysis/hdf5/new_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <system_error>

namespace spes::analysis {
namespace {

namespace fs = std::filesystem;

bool NoSpace(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG; }

// Where `path` may lead to a file, nothing; otherwise what is wrong with it.
std::string Objection(const std::string& path, const fs::path& folder) {
  std::error_code ignored;
  if (path.empty()) return "no name given; name a file, such as run.h5";
  if (fs::is_directory(path, ignored)) {
    return fmt::format("is a folder; name a file in it, such as {}",
                       (fs::path(path) / "run.h5").string());
  }
  if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)) {
    return "is not a regular file; name another";
  }
  if (!fs::exists(folder, ignored)) {
    return fmt::format("there is no folder {}; create it or name another", folder.string());
  }
  if (!fs::is_directory(folder, ignored)) {
    return fmt::format("{} is not a folder; name another", folder.string());
  }
  return "";
}

}  // namespace

NewFile::NewFile(const std::string& path) : path_(path) {
  const fs::path folder = fs::path(path).has_parent_path() ? fs::path(path).parent_path() : ".";
  if (const std::string objection = Objection(path, folder); !objection.empty()) {
    throw std::invalid_argument(fmt::format("output file {}: {}", path, objection));
  }
  // A link stays one: what it leads to is replaced.
  std::error_code absent;
  if (const fs::path target = fs::canonical(path, absent); !absent) path_ = target.string();
  temporary_ = fmt::format("{}.{}.tmp", path_, getpid());
  const int file = open(temporary_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  if (file >= 0) {
    close(file);
    return;
  }
  const int error = errno;
  const std::string cause = std::generic_category().message(error);
  if (NoSpace(error)) {
    throw std::runtime_error(
        fmt::format("output file {}: {}; free some space there or name another", path, cause));
  }
  throw std::invalid_argument(
      fmt::format("output file {}: cannot be created in folder {} ({}); name one in a folder that "
                  "you may write to",
                  path, folder.string(), cause));
}

NewFile::~NewFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void NewFile::MoveIntoPlace() {
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    throw std::runtime_error(fmt::format("output file {}: cannot be put in place ({})", path_,
                                         std::generic_category().message(errno)));
  }
  temporary_.clear();
}

std::uint64_t ReserveSpace(int descriptor, std::uint64_t from, std::uint64_t end) {
  constexpr std::uint64_t kStep = 64 << 10;
  if (end <= from) return from;
  end = (end + kStep - 1) / kStep * kStep;
  // A limit on file sizes is not looked at where the size stays as it is.
  rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && end > limit.rlim_cur) {
    throw std::system_error(EFBIG, std::generic_category());
  }
  if (fallocate(descriptor, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(from),
                static_cast<off_t>(end - from)) != 0 &&
      NoSpace(errno)) {
    throw std::system_error(errno, std::generic_category());
  }
  return end;
}

}  // namespace spes::analysis
