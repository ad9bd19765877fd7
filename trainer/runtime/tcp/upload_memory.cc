#include "trainer/runtime/tcp/upload_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

namespace spes::trainer {

namespace {

constexpr std::int64_t kAlignment = 64;
constexpr std::int64_t kPage = 4096;
// Address space is asked for in pieces of this size: thousands of blocks are few mappings.
constexpr std::int64_t kSlab = 256 << 20;

std::int64_t RoundUp(std::int64_t bytes, std::int64_t to) { return (bytes + to - 1) / to * to; }

// A file of `folder` that has no name and goes with its last user.
int OpenUnnamed(const std::string& folder) {
  const int fd = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return fd;
  std::string path = folder + "/upload-XXXXXX";  // not every file system has those
  const int named = mkostemp(path.data(), O_CLOEXEC);
  if (named >= 0) unlink(path.c_str());
  return named;
}

// Mapped memory; without a file (fd −1) ordinary memory that goes back to the system at once.
class Mapping {
 public:
  Mapping(int fd, std::int64_t offset, std::int64_t bytes) : bytes_(bytes) {
    void* data =
        mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
             fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED | MAP_NORESERVE, fd, offset);
    if (data == MAP_FAILED) {
      throw NoRoomError(fmt::format("an upload has no memory: {}", std::strerror(errno)));
    }
    data_ = static_cast<std::byte*>(data);
    // Fewer faults on the way in; where the system has no large pages nothing is lost.
    if (fd < 0) madvise(data_, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);
  }
  ~Mapping() { munmap(data_, static_cast<std::size_t>(bytes_)); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }
  void Trim() const { madvise(data_, static_cast<std::size_t>(bytes_), MADV_DONTNEED); }

 private:
  std::byte* data_;
  std::int64_t bytes_;
};

}  // namespace

// Buffers are let go of on any thread.
struct UploadMemory::State {
  std::atomic<int> in_memory{0};
  std::mutex mutex;
  std::set<const Spooled*> spooled;

  // Ordinary memory: what uploads have let go of serves the next ones, as a round's do those of the
  // round before. All there is is never more than what was in use at one time.
  std::multimap<std::int64_t, std::unique_ptr<Mapping>> idle;  // by size
  std::int64_t used_bytes = 0, idle_bytes = 0, most_bytes = 0;

  std::unique_ptr<Mapping> Take(std::int64_t bytes) {
    std::unique_ptr<Mapping> mapping;
    {
      const std::lock_guard lock(mutex);
      used_bytes += bytes;
      most_bytes = std::max(most_bytes, used_bytes);
      if (auto found = idle.extract(bytes)) {
        mapping = std::move(found.mapped());
        idle_bytes -= bytes;
      }
    }
    if (!mapping) {
      try {
        return std::make_unique<Mapping>(-1, 0, bytes);
      } catch (...) {
        const std::lock_guard lock(mutex);
        used_bytes -= bytes;
        throw;
      }
    }
    std::memset(mapping->data(), 0, static_cast<std::size_t>(bytes));
    return mapping;
  }
  void GiveBack(std::unique_ptr<Mapping> mapping) {
    const std::lock_guard lock(mutex);
    const std::int64_t bytes = mapping->bytes();
    used_bytes -= bytes;
    if (used_bytes + idle_bytes + bytes > most_bytes) return;
    idle_bytes += bytes;
    idle.emplace(bytes, std::move(mapping));
  }
};

// One upload in a file.
class UploadMemory::Spooled : public std::enable_shared_from_this<Spooled> {
 public:
  Spooled(const std::string& folder, std::shared_ptr<State> state)
      : folder_(folder), state_(std::move(state)), fd_(OpenUnnamed(folder)) {
    if (fd_ < 0) Fail(errno);
    const std::lock_guard lock(state_->mutex);
    state_->spooled.insert(this);
  }
  ~Spooled() {
    {
      const std::lock_guard lock(state_->mutex);
      state_->spooled.erase(this);
    }
    close(fd_);
  }
  Spooled(const Spooled&) = delete;
  Spooled& operator=(const Spooled&) = delete;

  // A file's memory cannot fail where it is written to, other than by a signal: the room on the
  // disk is had before.
  Buffer Take(std::int64_t bytes) {
    const std::int64_t size = std::max(kAlignment, RoundUp(bytes, kAlignment));
    if (slabs_.empty() || used_ + size > slabs_.back()->bytes()) {
      offset_ += slabs_.empty() ? 0 : slabs_.back()->bytes();
      used_ = had_ = 0;
      const std::int64_t slab = std::max(kSlab, RoundUp(size, kPage));
      if (ftruncate(fd_, offset_ + slab) != 0) Fail(errno);
      auto mapping = std::make_unique<Mapping>(fd_, offset_, slab);
      const std::lock_guard lock(state_->mutex);  // Trim looks at them
      slabs_.push_back(std::move(mapping));
    }
    const std::int64_t end = RoundUp(used_ + size, kPage);
    if (end > had_) {
      const int error = posix_fallocate(fd_, offset_ + had_, end - had_);
      if (error != 0) Fail(error);
      had_ = end;
    }
    std::byte* data = slabs_.back()->data() + used_;
    used_ += size;
    return Buffer(data, bytes, shared_from_this());
  }

  void Trim() const {
    for (const auto& slab : slabs_) slab->Trim();
  }

 private:
  [[noreturn]] void Fail(int error) const {
    throw NoRoomError(
        fmt::format("{}: an upload cannot be put there: {}", folder_, std::strerror(error)));
  }

  std::string folder_;
  std::shared_ptr<State> state_;
  int fd_;
  std::vector<std::unique_ptr<Mapping>> slabs_;
  std::int64_t offset_ = 0;          // of the last slab in the file
  std::int64_t used_ = 0, had_ = 0;  // of the last slab: given away, and on the disk
};

UploadMemory::UploadMemory(int in_memory, std::string spool)
    : in_memory_(in_memory), spool_(std::move(spool)), state_(std::make_shared<State>()) {
  if (spool_.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(spool_, error);
  if (error) {
    throw std::invalid_argument(fmt::format("{}: cannot be made: {}", spool_, error.message()));
  }
  const int fd = OpenUnnamed(spool_);
  if (fd < 0) {
    throw std::invalid_argument(
        fmt::format("{}: no file can be put there: {}", spool_, std::strerror(errno)));
  }
  close(fd);
}

UploadMemory::~UploadMemory() = default;

Allocate UploadMemory::ForUpload() {
  if (!spool_.empty() && state_->in_memory >= in_memory_) {
    return [upload = std::make_shared<Spooled>(spool_, state_)](std::int64_t bytes) {
      return upload->Take(bytes);
    };
  }
  ++state_->in_memory;
  const std::shared_ptr<void> counted(nullptr, [state = state_](void*) { --state->in_memory; });
  return [counted, state = state_](std::int64_t bytes) {
    std::unique_ptr<Mapping> mapping = state->Take(RoundUp(std::max(kAlignment, bytes), kPage));
    std::byte* data = mapping->data();
    const std::shared_ptr<Mapping> held(mapping.release(), [state, counted](Mapping* done) {
      state->GiveBack(std::unique_ptr<Mapping>(done));
    });
    return Buffer(data, bytes, held);
  };
}

Allocate UploadMemory::ForDecoding() {
  try {
    return [upload = ForUpload()](std::int64_t bytes) {
      try {
        return upload(bytes);
      } catch (const NoRoomError&) {
        return Buffer(bytes);
      }
    };
  } catch (const NoRoomError&) {
    return {};
  }
}

int UploadMemory::in_memory() const { return state_->in_memory; }

int UploadMemory::in_files() const {
  const std::lock_guard lock(state_->mutex);
  return static_cast<int>(state_->spooled.size());
}

void UploadMemory::Trim() const {
  const std::lock_guard lock(state_->mutex);
  for (const Spooled* upload : state_->spooled) upload->Trim();
}

}  // namespace spes::trainer
