#include "trainer/sync/compress.h"

#include <fmt/format.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <stdexcept>

namespace spes::trainer {

namespace {

constexpr char kStored = 0, kZstd = 1;

// The first bytes of all numbers, then the second ones, and so on.
std::string Transpose(int width, std::string_view text) {
  const auto w = static_cast<std::size_t>(width);
  const std::size_t n = text.size() / w;
  std::string out(text.size(), '\0');
  for (std::size_t b = 0; b < w; ++b) {
    char* plane = out.data() + b * n;
    for (std::size_t i = 0; i < n; ++i) plane[i] = text[i * w + b];
  }
  return out;
}

std::string TransposeBack(int width, std::string_view text) {
  const auto w = static_cast<std::size_t>(width);
  const std::size_t n = text.size() / w;
  std::string out(text.size(), '\0');
  for (std::size_t b = 0; b < w; ++b) {
    const char* plane = text.data() + b * n;
    for (std::size_t i = 0; i < n; ++i) out[i * w + b] = plane[i];
  }
  return out;
}

[[noreturn]] void Refuse(const std::string& what) {
  throw std::invalid_argument("a block's compressed code " + what);
}

}  // namespace

std::string Compress(int level, int width, std::string_view text) {
  const std::string transposed = width == 1 ? std::string() : Transpose(width, text);
  const std::string_view planes = width == 1 ? text : transposed;
  std::string code(1 + text.size(), kZstd);
  const std::size_t size =
      ZSTD_compress(code.data() + 1, text.size(), planes.data(), planes.size(), level);
  if (!ZSTD_isError(size) && size < text.size()) {
    code.resize(1 + size);
    return code;
  }
  if (ZSTD_isError(size) && ZSTD_getErrorCode(size) != ZSTD_error_dstSize_tooSmall) {
    throw std::runtime_error(fmt::format("zstd: {}", ZSTD_getErrorName(size)));
  }
  code = kStored;
  return code.append(text);
}

std::string Decompress(int width, std::int64_t largest, std::string_view code) {
  if (code.empty()) Refuse("is empty");
  const char form = code.front();
  code.remove_prefix(1);
  if (form == kStored) {
    if (static_cast<std::int64_t>(code.size()) > largest) {
      Refuse(fmt::format("has {} bytes; {} is the most", code.size(), largest));
    }
    return std::string(code);
  }
  if (form != kZstd) Refuse("does not begin with 0 or 1");
  const unsigned long long size = ZSTD_getFrameContentSize(code.data(), code.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN ||
      size > static_cast<unsigned long long>(largest)) {
    Refuse(fmt::format("does not say that it holds at most {} bytes", largest));
  }
  if (size % static_cast<unsigned>(width) != 0) Refuse("ends within a number");
  if (ZSTD_findFrameCompressedSize(code.data(), code.size()) != code.size()) {
    Refuse("is no single zstd frame");
  }
  std::string text(static_cast<std::size_t>(size), '\0');
  const std::size_t got = ZSTD_decompress(text.data(), text.size(), code.data(), code.size());
  if (ZSTD_isError(got)) Refuse("cannot be decompressed");
  return width == 1 ? text : TransposeBack(width, text);
}

}  // namespace spes::trainer
