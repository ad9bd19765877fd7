#include "trainer/wire/printable.h"

#include <cstddef>
#include <cstdint>

namespace spes::trainer {

namespace {

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;  // 0: no UTF-8
};

// The first character of a text that is not empty (RFC 3629, section 4).
Character First(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 0;
  if (bytes == 0 || bytes > text.size()) return {};
  std::uint32_t code = lead & (0xFFu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3F);
  }
  // Longer than need be, half of a pair, or beyond Unicode.
  constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kSmallest[bytes] || (code >= 0xD800 && code < 0xE000) || code > 0x10FFFF) return {};
  return {code, bytes};
}

bool IsPrintable(std::uint32_t code) {
  const bool control = code < 0x20 || (code >= 0x7F && code < 0xA0);
  const bool line_or_direction = code == 0x200E || code == 0x200F ||
                                 (code >= 0x2028 && code <= 0x202E) ||
                                 (code >= 0x2066 && code <= 0x2069);
  return !control && !line_or_direction;
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string printable;
  printable.reserve(text.size());
  while (!text.empty()) {
    const Character c = First(text);
    const std::size_t bytes = c.bytes == 0 ? 1 : c.bytes;
    if (c.bytes > 0 && IsPrintable(c.code)) {
      printable += text.substr(0, bytes);
    } else {
      printable.append(bytes, '?');
    }
    text.remove_prefix(bytes);
  }
  return printable;
}

}  // namespace spes::trainer
