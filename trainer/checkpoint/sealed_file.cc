#include "trainer/checkpoint/sealed_file.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>
#include <utility>

#include "trainer/checkpoint/atomic_file.h"

namespace spes::trainer {
namespace {

constexpr const char* kTensors = "tensor_checksums";
constexpr const char* kHeader = "header_checksum";
constexpr std::size_t kDigits = 16;

std::string Digits(std::uint64_t checksum) { return fmt::format("{:016x}", checksum); }

std::uint64_t Checksum(const void* data, std::size_t bytes) { return XXH3_64bits(data, bytes); }

// Where the digits of the header's own checksum begin. Nothing else can read like this: within a
// text the quotation marks would be escaped.
std::size_t FindDigits(std::string_view header, std::string_view digits) {
  const std::string entry = fmt::format("\"{}\":\"{}\"", kHeader, digits);
  const std::size_t at = header.find(entry);
  return at == std::string_view::npos ? at : at + entry.size() - 1 - kDigits;
}

SafetensorsFile Open(const std::string& path) {
  // Not damage, and no reason to take an older file instead.
  if (access(path.c_str(), R_OK) != 0) {
    throw std::runtime_error(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  }
  try {
    return SafetensorsFile(path);
  } catch (const std::invalid_argument& e) {
    throw DamagedFile(e.what());
  }
}

}  // namespace

void WriteSealed(const std::string& path, std::map<std::string, std::string> metadata,
                 std::span<const TensorView> tensors, FileSystem& files) {
  std::string& checksums = metadata[kTensors];
  for (const TensorView& tensor : tensors) {
    checksums += Digits(Checksum(tensor.data.data(), tensor.data.size()));
  }
  const std::string zeros(kDigits, '0');
  metadata[kHeader] = zeros;
  std::string header = SafetensorsHeader(metadata, tensors);
  header.replace(FindDigits(header, zeros), kDigits,
                 Digits(Checksum(header.data(), header.size())));

  AtomicFile file(path, files);
  file.Write(header.data(), header.size());
  for (const TensorView& tensor : tensors) file.Write(tensor.data.data(), tensor.data.size());
  file.Commit();
}

SealedFile::SealedFile(const std::string& path) : file_(Open(path)) {
  CheckHeader();
  const auto& metadata = file_.metadata();
  const auto found = metadata.find(kTensors);
  const std::string_view text = found == metadata.end() ? "" : std::string_view(found->second);
  for (std::size_t at = 0; at + kDigits <= text.size(); at += kDigits) {
    const char *begin = text.data() + at, *end = begin + kDigits;
    std::uint64_t checksum = 0;
    if (std::from_chars(begin, end, checksum, 16).ptr != end) break;
    checksums_.push_back(checksum);
  }
  if (text.size() != file_.tensors().size() * kDigits ||
      checksums_.size() != file_.tensors().size()) {
    throw DamagedFile(
        fmt::format("{}: is damaged: it does not have one checksum per tensor", path));
  }
}

void SealedFile::CheckHeader() const {
  const auto fail = [this](const char* why) {
    throw DamagedFile(fmt::format("{}: {}", file_.path(), why));
  };
  const auto found = file_.metadata().find(kHeader);
  if (found == file_.metadata().end() || found->second.size() != kDigits) {
    fail("has no header_checksum: it is damaged or was written by another program");
  }
  std::string header;
  try {
    header = file_.Header();
  } catch (const std::invalid_argument& e) {
    throw DamagedFile(e.what());
  }
  const std::size_t at = FindDigits(header, found->second);
  if (at == std::string::npos) fail("is damaged: its header is not as it was written");
  header.replace(at, kDigits, kDigits, '0');
  if (Digits(Checksum(header.data(), header.size())) != found->second) {
    fail("is damaged: its header does not give its checksum");
  }
}

void SealedFile::Read(const TensorInfo& tensor, std::byte* out) const {
  try {
    file_.ReadRaw(tensor, out);
  } catch (const std::invalid_argument& e) {
    throw DamagedFile(e.what());
  }
  const auto index = static_cast<std::size_t>(&tensor - file_.tensors().data());
  if (Checksum(out, static_cast<std::size_t>(tensor.bytes)) != checksums_[index]) {
    throw DamagedFile(fmt::format("{}: is damaged: tensor '{}' does not give its checksum",
                                  file_.path(), OneLine(tensor.name)));
  }
}

}  // namespace spes::trainer
