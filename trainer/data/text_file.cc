#include "trainer/data/text_file.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <stdexcept>

namespace spes::trainer {
namespace {

[[noreturn]] void Fail(const std::string& file, const std::string& why) {
  throw std::invalid_argument(file + ": " + why);
}

// Appends at most `limit` bytes of the file.
void Append(const std::string& file, std::int64_t limit, std::string& text) {
  if (std::filesystem::is_directory(file)) Fail(file, "is a folder, not a file");
  errno = 0;
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> in(gzopen(file.c_str(), "rb"), gzclose_r);
  if (!in) Fail(file, std::string("cannot be read: ") + std::strerror(errno ? errno : ENOMEM));
  gzbuffer(in.get(), 1 << 18);

  const std::size_t start = text.size();
  std::size_t used = start;
  const std::size_t end = limit < std::numeric_limits<std::int64_t>::max() - std::int64_t(start)
                              ? start + static_cast<std::size_t>(limit)
                              : std::numeric_limits<std::size_t>::max();
  while (used < end) {
    // Grows by doubling, so that a large file is moved a few times only.
    const std::size_t want =
        std::min({end - used, std::max<std::size_t>(used, 1 << 20), std::size_t{1} << 30});
    text.resize(used + want);
    errno = 0;
    const int got = gzread(in.get(), text.data() + used, static_cast<unsigned>(want));
    int status = Z_OK;
    const char* message = gzerror(in.get(), &status);
    // Z_BUF_ERROR is how zlib says that the stream was cut short.
    if (status == Z_BUF_ERROR) Fail(file, "is cut short: its gzip stream has no end");
    if (status == Z_ERRNO) Fail(file, std::string("cannot be read: ") + std::strerror(errno));
    if (got < 0) Fail(file, std::string("is damaged: ") + message);
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
  }
  text.resize(used);
  if (used == start) Fail(file, "is empty");
}

}  // namespace

std::string ReadText(const std::vector<std::string>& files, std::int64_t limit) {
  std::string text;
  const std::int64_t all = limit > 0 ? limit : std::numeric_limits<std::int64_t>::max();
  for (const std::string& file : files) {
    const std::int64_t rest = all - static_cast<std::int64_t>(text.size());
    if (rest == 0) break;
    Append(file, rest, text);
  }
  return text;
}

}  // namespace spes::trainer
