#include "analysis/quantities.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <span>

namespace spes::analysis {
namespace {

constexpr const char* kUnknown = "–";

// `value` with three digits and the first unit in which it stays below `base`.
std::string Scale(double value, double base, std::span<const char* const> units) {
  if (!std::isfinite(value)) return kUnknown;
  std::size_t unit = 0;
  while (unit + 1 < units.size() && value >= base * 0.9995) {
    value /= base;
    ++unit;
  }
  const int decimals = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}{}", value, decimals, units[unit]);
}

}  // namespace

std::string FormatDuration(double seconds) {
  if (!std::isfinite(seconds)) return kUnknown;
  if (seconds == 0) return "0 s";
  if (seconds < 0.9995) return fmt::format("{:.3g} ms", seconds * 1e3);
  if (seconds < 9.995) return fmt::format("{:.2f} s", seconds);
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const std::int64_t s = std::llround(seconds);
  if (s < 3600) return fmt::format("{} min {:02} s", s / 60, s % 60);
  const std::int64_t min = std::llround(seconds / 60);
  if (min < 1440) return fmt::format("{} h {:02} min", min / 60, min % 60);
  const std::int64_t h = std::llround(seconds / 3600);
  return fmt::format("{} d {:02} h", h / 24, h % 24);
}

std::string FormatBytes(double bytes) {
  static constexpr std::array kUnits = {" B", " KiB", " MiB", " GiB", " TiB", " PiB"};
  return Scale(bytes, 1024, kUnits);
}

std::string FormatCount(double count) {
  static constexpr std::array kUnits = {"", " k", " M", " G", " T"};
  return Scale(count, 1000, kUnits);
}

std::string FormatPercent(double share) {
  return std::isfinite(share) ? fmt::format("{:.1f} %", 100 * share) : kUnknown;
}

}  // namespace spes::analysis
