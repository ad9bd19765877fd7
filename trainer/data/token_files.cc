#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "trainer/data/token_array.h"

namespace spes::trainer {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

constexpr std::int64_t kCheckedTokens = 65536;

std::int64_t Bytes(TokenType type) { return type == TokenType::kUint16 ? 2 : 4; }
const char* Name(TokenType type) { return type == TokenType::kUint16 ? "uint16" : "uint32"; }

class Descriptor {
 public:
  explicit Descriptor(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

class FileTokens final : public TokenArray {
 public:
  FileTokens(const std::vector<std::string>& files, TokenType type, std::int64_t vocabulary,
             std::int64_t limit)
      : type_(type), vocabulary_(vocabulary) {
    for (const std::string& path : files) {
      if (limit > 0 && size_ >= limit) break;
      const std::int64_t tokens = Count(path);
      files_.push_back({path, size_});
      size_ += tokens;
    }
    if (limit > 0) size_ = std::min(size_, limit);
    CheckEnds();
  }

  std::int64_t size() const override { return size_; }

  void Read(std::int64_t first, std::int64_t count, std::int32_t* out) const override {
    assert(first >= 0 && count >= 0 && first + count <= size_);
    if (count == 0) return;
    std::vector<char> raw;
    auto file = std::upper_bound(files_.begin(), files_.end(), first,
                                 [](std::int64_t at, const File& f) { return at < f.first; }) -
                1;
    for (; count > 0; ++file) {
      const std::int64_t end = file + 1 == files_.end() ? size_ : (file + 1)->first;
      const std::int64_t here = std::min(count, end - first);
      if (here == 0) continue;
      raw.resize(static_cast<std::size_t>(here * Bytes(type_)));
      ReadBytes(file->path, (first - file->first) * Bytes(type_), raw);
      Convert(raw, here, out);
      if (const auto bad = FirstBeyond(out, here); bad < here) {
        throw std::runtime_error(Beyond(file->path, first - file->first + bad, out[bad]));
      }
      first += here;
      count -= here;
      out += here;
    }
  }

 private:
  struct File {
    std::string path;
    std::int64_t first;  // index of its first token in the whole array
  };

  // Tokens in a file, from its size.
  std::int64_t Count(const std::string& path) const {
    const Descriptor file(path);
    struct stat info {};
    if (file.get() < 0 || fstat(file.get(), &info) != 0) {
      throw std::invalid_argument(fmt::format("{}: cannot be read: {}", path, strerror(errno)));
    }
    if (!S_ISREG(info.st_mode)) throw std::invalid_argument(path + ": is not a file");
    if (info.st_size == 0) throw std::invalid_argument(path + ": is empty");
    char magic[6] = {};
    if (pread(file.get(), magic, 6, 0) == 6 && std::memcmp(magic, "\x93NUMPY", 6) == 0) {
      throw std::invalid_argument(
          path + ": starts with a NumPy header; raw token ids are wanted (ndarray.tofile)");
    }
    if (info.st_size % Bytes(type_) != 0) {
      throw std::invalid_argument(
          fmt::format("{}: its {} bytes are no multiple of the {} of a {} token id", path,
                      info.st_size, Bytes(type_), Name(type_)));
    }
    return info.st_size / Bytes(type_);
  }

  // A wrong element type or another tokenizer's file shows at once.
  void CheckEnds() const {
    std::vector<std::int32_t> ids(kCheckedTokens);
    for (std::size_t f = 0; f < files_.size(); ++f) {
      const std::int64_t begin = files_[f].first;
      const std::int64_t end = f + 1 == files_.size() ? size_ : files_[f + 1].first;
      const std::int64_t count = std::min(kCheckedTokens, end - begin);
      try {
        Read(begin, count, ids.data());
        Read(end - count, count, ids.data());
      } catch (const std::runtime_error& e) {
        throw std::invalid_argument(e.what());
      }
    }
  }

  static void ReadBytes(const std::string& path, std::int64_t offset, std::vector<char>& raw) {
    const Descriptor file(path);
    if (file.get() < 0) {
      throw std::runtime_error(fmt::format("{}: cannot be read: {}", path, strerror(errno)));
    }
    std::size_t done = 0;
    while (done < raw.size()) {
      const ssize_t got = pread(file.get(), raw.data() + done, raw.size() - done,
                                offset + static_cast<std::int64_t>(done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        throw std::runtime_error(fmt::format("{}: cannot read {} bytes at {}: {}", path, raw.size(),
                                             offset,
                                             got < 0 ? strerror(errno) : "it has become shorter"));
      }
      done += static_cast<std::size_t>(got);
    }
  }

  // An id of 2³¹ or more becomes negative and is found by FirstBeyond.
  void Convert(const std::vector<char>& raw, std::int64_t count, std::int32_t* out) const {
    if (type_ == TokenType::kUint32) {
      std::memcpy(out, raw.data(), raw.size());
      return;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      std::uint16_t id;
      std::memcpy(&id, raw.data() + 2 * i, 2);
      out[i] = id;
    }
  }

  std::int64_t FirstBeyond(const std::int32_t* ids, std::int64_t count) const {
    return std::find_if(ids, ids + count,
                        [this](std::int32_t id) {
                          return static_cast<std::int64_t>(static_cast<std::uint32_t>(id)) >=
                                 vocabulary_;
                        }) -
           ids;
  }

  std::string Beyond(const std::string& path, std::int64_t at, std::int32_t id) const {
    return fmt::format("{}: token {} is {}, beyond the model's vocabulary of {} (read as {})", path,
                       at, static_cast<std::uint32_t>(id), vocabulary_, Name(type_));
  }

  TokenType type_;
  std::int64_t vocabulary_;
  std::int64_t size_ = 0;
  std::vector<File> files_;
};

}  // namespace

std::unique_ptr<TokenArray> OpenTokenFiles(const std::vector<std::string>& files, TokenType type,
                                           std::int64_t vocabulary, std::int64_t limit_tokens) {
  return std::make_unique<FileTokens>(files, type, vocabulary, limit_tokens);
}

}  // namespace spes::trainer
