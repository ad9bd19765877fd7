// Files of a coordinator's journal. Of the first byte of the input, bit 0 is the type of the
// elements; without bit 1 the rest is the file as it is. With it the rest is the header's text, up
// to the first zero byte, and then the values: the length and the checksums are put right, so that
// what lies behind them is reached.
#define XXH_INLINE_ALL
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tests/fuzz/harness.h"
#include "tests/trainer/checkpoint/state_samples.h"
#include "trainer/checkpoint/coordinator_file.h"

namespace spes::fuzz {

namespace {

// A file in memory.
class MemoryFile {
 public:
  MemoryFile() : file_(memfd_create("state", MFD_CLOEXEC)) {
    if (file_ < 0) throw std::runtime_error("no file in memory");
  }
  explicit MemoryFile(std::string_view content) : MemoryFile() {
    if (write(file_, content.data(), content.size()) != static_cast<ssize_t>(content.size())) {
      throw std::runtime_error("a file in memory cannot be written");
    }
  }
  ~MemoryFile() { close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }
  int Duplicate() const { return dup(file_); }

 private:
  int file_;
};

// Whatever is written goes into one file in memory.
class IntoMemory : public trainer::FileSystem {
 public:
  explicit IntoMemory(const MemoryFile& file) : file_(file) {}
  int Open(const std::string&, int flags) override {
    return (flags & O_DIRECTORY) != 0 ? FileSystem::Open("/", flags) : file_.Duplicate();
  }
  int Sync(int) override { return 0; }
  int Rename(const std::string&, const std::string&) override { return 0; }
  int Remove(const std::string&) override { return 0; }

 private:
  const MemoryFile& file_;
};

std::string Digits(std::string_view text) {
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

// Puts `text` where the value of this entry of the metadata is. False where there is none.
bool Replace(std::string& header, const char* name, std::string_view text) {
  const std::string start = fmt::format("\"{}\":\"", name);
  const std::size_t found = header.find(start);
  if (found == std::string::npos) return false;
  const std::size_t begin = found + start.size(), end = header.find('"', begin);
  if (end == std::string::npos) return false;
  header.replace(begin, end - begin, text);
  return true;
}

std::string WithLength(std::string_view header) {
  const std::uint64_t length = header.size();
  std::string all(sizeof(length), '\0');
  std::memcpy(all.data(), &length, sizeof(length));
  return all.append(header);
}

// The file of this header and these values with the right checksums, as far as it has any.
std::string Sealed(std::string header, std::string_view values) {
  const MemoryFile file(WithLength(header).append(values));
  const trainer::SafetensorsFile parsed(file.path());
  std::string checksums;
  for (const trainer::TensorInfo& tensor : parsed.tensors()) {
    checksums += Digits(values.substr(static_cast<std::size_t>(tensor.offset) - 8 - header.size(),
                                      static_cast<std::size_t>(tensor.bytes)));
  }
  if (Replace(header, "tensor_checksums", checksums) &&
      Replace(header, "header_checksum", std::string(16, '0'))) {
    Replace(header, "header_checksum", Digits(WithLength(header)));
  }
  return WithLength(header).append(values);
}

void Require(bool holds, const std::string& what) {
  if (!holds) throw std::logic_error(what);
}

bool Takes(std::string_view content, const std::shared_ptr<const trainer::BlockTable>& table) {
  const MemoryFile file(content);
  const trainer::CoordinatorState state = trainer::ReadCoordinatorState(file.path(), table);
  // What has been read is a state: it can be written, and is the same again.
  const MemoryFile again;
  IntoMemory files(again);
  trainer::WriteCoordinatorState(state, again.path(), files);
  const std::string difference =
      Difference(state, trainer::ReadCoordinatorState(again.path(), table));
  Require(difference.empty(), "another " + difference + " comes back");
  return true;
}

}  // namespace

bool FuzzJournal(std::span<const std::byte> input) {
  static const std::shared_ptr<const trainer::BlockTable> tables[] = {
      trainer::StateTable(trainer::DType::kFloat32, 1),
      trainer::StateTable(trainer::DType::kFloat64, 1)};
  if (input.empty()) return false;
  const auto kind = static_cast<unsigned>(input[0]);
  std::string_view rest(reinterpret_cast<const char*>(input.data()) + 1, input.size() - 1);
  try {
    if ((kind & 2) == 0) return Takes(rest, tables[kind & 1]);
    const std::string_view header = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(header.size() + 1, rest.size()));
    return Takes(Sealed(std::string(header), rest), tables[kind & 1]);
  } catch (const std::invalid_argument& error) {
    const std::string_view line = error.what();
    Require(line.find('\n') == std::string_view::npos, "a message of several lines");
    Require(line.size() < 400, "a long message");
    return false;
  }
}

}  // namespace spes::fuzz
