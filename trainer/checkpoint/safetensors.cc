#include "trainer/checkpoint/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "trainer/checkpoint/atomic_file.h"

namespace spes::trainer {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::int64_t kLengthBytes = 8;
constexpr std::int64_t kLargestHeader = 100'000'000;  // the reference implementation's limit
constexpr int kDeepest = 8;                           // the format needs 2
constexpr const char* kMetadata = "__metadata__";

struct TypeSize {
  std::string_view name;
  std::int64_t bytes;
};
constexpr std::array<TypeSize, 15> kTypes = {{{"F64", 8},
                                              {"F32", 4},
                                              {"F16", 2},
                                              {"BF16", 2},
                                              {"F8_E4M3", 1},
                                              {"F8_E5M2", 1},
                                              {"I64", 8},
                                              {"I32", 4},
                                              {"I16", 2},
                                              {"I8", 1},
                                              {"U64", 8},
                                              {"U32", 4},
                                              {"U16", 2},
                                              {"U8", 1},
                                              {"BOOL", 1}}};

// Parses the header; a name twice in one object is an error that plain JSON parsers let pass. What
// is nested deep would cost much memory, and writing it into a message much of the stack.
json ParseUnique(std::string_view text) {
  std::vector<std::set<std::string>> open;
  return json::parse(text, [&](int depth, json::parse_event_t event, json& value) {
    if (depth > kDeepest) throw std::invalid_argument("it is nested too deep");
    if (event == json::parse_event_t::object_start) open.emplace_back();
    if (event == json::parse_event_t::object_end) open.pop_back();
    if (event == json::parse_event_t::key && !open.back().insert(value).second) {
      throw std::invalid_argument(fmt::format("'{}' stands twice", value.get<std::string>()));
    }
    return true;
  });
}

// A whole number ≥ 0 that fits.
std::int64_t Natural(const json& value) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > INT64_MAX) {
    throw std::invalid_argument(fmt::format("{} is not a size", value.dump()));
  }
  return value.get<std::int64_t>();
}

// One entry of the header; offset is still relative to the data. Throws std::invalid_argument.
TensorInfo ParseTensor(const std::string& name, const json& entry, std::int64_t data_bytes) {
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() ||
      !entry.contains("shape") || !entry["shape"].is_array() || !entry.contains("data_offsets") ||
      !entry["data_offsets"].is_array() || entry["data_offsets"].size() != 2) {
    throw std::invalid_argument("needs dtype, shape and two data_offsets");
  }
  TensorInfo tensor{.name = name, .dtype = entry["dtype"], .shape = {}, .elements = 1};
  const auto* type = std::find_if(kTypes.begin(), kTypes.end(),
                                  [&](const TypeSize& t) { return t.name == tensor.dtype; });
  if (type == kTypes.end()) {
    throw std::invalid_argument(fmt::format("has the unknown type {}", tensor.dtype));
  }
  bool overflow = false;
  for (const json& size : entry["shape"]) {
    tensor.shape.push_back(Natural(size));
    overflow |= __builtin_mul_overflow(tensor.elements, tensor.shape.back(), &tensor.elements);
  }
  overflow |= __builtin_mul_overflow(tensor.elements, type->bytes, &tensor.bytes);
  const std::int64_t begin = Natural(entry["data_offsets"][0]);
  const std::int64_t end = Natural(entry["data_offsets"][1]);
  if (begin > end || end > data_bytes) {
    throw std::invalid_argument(fmt::format(
        "lies at bytes {} to {} of {}; the file is cut short or damaged", begin, end, data_bytes));
  }
  if (overflow || end - begin != tensor.bytes) {
    throw std::invalid_argument(fmt::format("has {} bytes, which is not its shape {} in {}",
                                            end - begin, entry["shape"].dump(), tensor.dtype));
  }
  tensor.offset = begin;
  return tensor;
}

template <class From, class To>
void Convert(const std::byte* from, std::int64_t count, std::byte* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + i * static_cast<std::int64_t>(sizeof(From)), sizeof(From));
    const To converted = static_cast<To>(value);
    std::memcpy(to + i * static_cast<std::int64_t>(sizeof(To)), &converted, sizeof(To));
  }
}

}  // namespace

std::string ShapeText(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

const char* SafetensorsName(DType dtype) { return dtype == DType::kFloat32 ? "F32" : "F64"; }

std::string OneLine(std::string text) {
  constexpr std::size_t kLongest = 200;
  if (text.size() > kLongest) {
    text.resize(kLongest);
    text += "…";
  }
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = '?';
  }
  return text;
}

void SafetensorsFile::Fail(const std::string& why) const {
  throw std::invalid_argument(path_ + ": " + OneLine(why));
}

SafetensorsFile::~SafetensorsFile() {
  if (fd_ >= 0) close(fd_);
}

SafetensorsFile::SafetensorsFile(std::string path) : path_(std::move(path)) {
  // Closes the file when the constructor throws; the destructor does not run then.
  struct Guard {
    int& fd;
    bool armed = true;
    ~Guard() {
      if (armed && fd >= 0) close(fd);
    }
  } guard{fd_};
  fd_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info {};
  if (fd_ < 0 || fstat(fd_, &info) != 0) {
    Fail(std::string("cannot be read: ") + std::strerror(errno));
  }
  if (!S_ISREG(info.st_mode)) Fail("is not a file");
  const std::int64_t size = info.st_size;
  if (size < kLengthBytes) Fail(fmt::format("is not a safetensors file: {} bytes only", size));
  std::uint64_t length = 0;
  ReadBytes(0, kLengthBytes, &length);
  if (length > static_cast<std::uint64_t>(std::min(size - kLengthBytes, kLargestHeader))) {
    Fail(
        fmt::format("is damaged or not a safetensors file: its header would be {} bytes, the file "
                    "has {}",
                    length, size));
  }
  header_bytes_ = kLengthBytes + static_cast<std::int64_t>(length);
  ParseHeader(std::string_view(Header()).substr(kLengthBytes), size - header_bytes_);
  for (TensorInfo& tensor : tensors_) tensor.offset += header_bytes_;
  guard.armed = false;
}

std::string SafetensorsFile::Header() const {
  std::string header(static_cast<std::size_t>(header_bytes_), '\0');
  ReadBytes(0, header_bytes_, header.data());
  return header;
}

void SafetensorsFile::ParseHeader(std::string_view text, std::int64_t data_bytes) {
  json header;
  try {
    header = ParseUnique(text);
  } catch (const json::exception&) {
    Fail("is damaged or not a safetensors file: its header is not JSON");
  } catch (const std::invalid_argument& e) {
    Fail(fmt::format("its header is damaged: {}", e.what()));
  }
  if (!header.is_object()) Fail("its header is damaged: not an object");
  for (const auto& [name, entry] : header.items()) {
    if (name == kMetadata) {
      if (!entry.is_object()) Fail("its header is damaged: __metadata__ is not an object");
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string()) Fail(fmt::format("its metadata '{}' is not text", key));
        metadata_[key] = value;
      }
      continue;
    }
    try {
      tensors_.push_back(ParseTensor(name, entry, data_bytes));
    } catch (const std::invalid_argument& e) {
      Fail(fmt::format("tensor '{}' {}", name, e.what()));
    }
  }
  std::sort(tensors_.begin(), tensors_.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes);
  });
  CheckCover(data_bytes);
  for (std::size_t i = 0; i < tensors_.size(); ++i) by_name_[tensors_[i].name] = i;
}

void SafetensorsFile::CheckCover(std::int64_t data_bytes) const {
  std::int64_t covered = 0;
  for (const TensorInfo& tensor : tensors_) {
    if (tensor.offset != covered) {
      Fail(fmt::format("tensor '{}' {} at byte {}; the header is damaged", tensor.name,
                       tensor.offset < covered ? "overlaps another" : "leaves a gap before it",
                       tensor.offset));
    }
    covered += tensor.bytes;
  }
  if (covered != data_bytes) {
    Fail(fmt::format("has {} bytes of values, its tensors need {}; it is damaged", data_bytes,
                     covered));
  }
}

const TensorInfo* SafetensorsFile::Find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

void SafetensorsFile::ReadBytes(std::int64_t offset, std::int64_t bytes, void* out) const {
  auto* at = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t got = pread(fd_, at, static_cast<std::size_t>(bytes), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) Fail(std::string("cannot be read: ") + std::strerror(errno));
    if (got == 0) Fail("has become shorter while it was read");
    at += got;
    offset += got;
    bytes -= got;
  }
}

void SafetensorsFile::ReadRaw(const TensorInfo& tensor, std::byte* out) const {
  ReadBytes(tensor.offset, tensor.bytes, out);
}

void SafetensorsFile::Read(const TensorInfo& tensor, DType dtype, std::byte* out) const {
  if (tensor.dtype == SafetensorsName(dtype)) return ReadRaw(tensor, out);
  if (tensor.dtype != "F32" && tensor.dtype != "F64") {
    Fail(fmt::format("tensor '{}' is {}; only F32 and F64 can be read", tensor.name, tensor.dtype));
  }
  const bool narrow = dtype == DType::kFloat32;  // F64 in the file
  const std::int64_t from_bytes = narrow ? 8 : 4, to_bytes = narrow ? 4 : 8;
  std::vector<std::byte> staging(static_cast<std::size_t>(from_bytes) << 16);
  for (std::int64_t done = 0; done < tensor.elements;) {
    const std::int64_t count = std::min<std::int64_t>(tensor.elements - done, 1 << 16);
    ReadBytes(tensor.offset + done * from_bytes, count * from_bytes, staging.data());
    std::byte* to = out + done * to_bytes;
    narrow ? Convert<double, float>(staging.data(), count, to)
           : Convert<float, double>(staging.data(), count, to);
    done += count;
  }
}

std::string SafetensorsHeader(const std::map<std::string, std::string>& metadata,
                              std::span<const TensorView> tensors) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  // Its operator[] would look through all names each time.
  auto& entries = header.get_ref<nlohmann::ordered_json::object_t&>();
  if (!metadata.empty()) entries.emplace_back(kMetadata, metadata);
  std::size_t offset = 0;
  for (const TensorView& tensor : tensors) {
    entries.emplace_back(tensor.name, nlohmann::ordered_json{
                                          {"dtype", SafetensorsName(tensor.dtype)},
                                          {"shape", tensor.shape},
                                          {"data_offsets", {offset, offset + tensor.data.size()}}});
    offset += tensor.data.size();
  }
  // Text that is not UTF-8 (a file name, say) must not keep a world from being saved.
  std::string text = header.dump(-1, ' ', false, json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string all(kLengthBytes, '\0');
  const std::uint64_t length = text.size();
  std::memcpy(all.data(), &length, sizeof(length));
  return all + text;
}

void WriteSafetensors(const std::string& path, const std::map<std::string, std::string>& metadata,
                      std::span<const TensorView> tensors) {
  const std::string header = SafetensorsHeader(metadata, tensors);
  AtomicFile file(path);
  file.Write(header.data(), header.size());
  for (const TensorView& tensor : tensors) file.Write(tensor.data.data(), tensor.data.size());
  file.Commit();
}

}  // namespace spes::trainer
