#include "sim/units.h"

#include <fmt/format.h>

#include <array>
#include <cassert>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>

namespace spes::sim {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t factor;
};

// From the smallest to the largest. Decimal units come first so that "1 GB" wins over a binary
// spelling of equal length.
constexpr std::array<Unit, 7> kDurations = {{{"ns", 1},
                                             {"us", 1'000},
                                             {"ms", 1'000'000},
                                             {"s", 1'000'000'000},
                                             {"min", 60'000'000'000},
                                             {"h", 3'600'000'000'000},
                                             {"d", 86'400'000'000'000}}};
constexpr std::array<Unit, 4> kBitRates = {
    {{"bps", 1}, {"kbps", 1'000}, {"Mbps", 1'000'000}, {"Gbps", 1'000'000'000}}};
constexpr std::array<Unit, 9> kByteSizes = {{{"B", 1},
                                             {"kB", 1'000},
                                             {"KiB", 1LL << 10},
                                             {"MB", 1'000'000},
                                             {"MiB", 1LL << 20},
                                             {"GB", 1'000'000'000},
                                             {"GiB", 1LL << 30},
                                             {"TB", 1'000'000'000'000},
                                             {"TiB", 1LL << 40}}};

// The value in the smallest unit. In long double, whose 64-bit significand holds every int64.
std::optional<long double> Parse(std::string_view text, std::span<const Unit> units) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  // from_chars would also take "-1", "inf" and "nan".
  if (text.empty() || !(text.front() == '.' || (text.front() >= '0' && text.front() <= '9'))) {
    return std::nullopt;
  }
  long double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  if (text.empty()) return value == 0 ? std::optional<long double>(0) : std::nullopt;
  for (const Unit& unit : units) {
    if (text == unit.name) return value * static_cast<long double>(unit.factor);
  }
  return std::nullopt;
}

std::optional<std::int64_t> ParseWhole(std::string_view text, std::span<const Unit> units) {
  const auto value = Parse(text, units);
  if (!value) return std::nullopt;
  const long double whole = std::round(*value);
  if (whole > static_cast<long double>(std::numeric_limits<std::int64_t>::max())) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(whole);
}

// A decimal number without exponent and without trailing zeros.
std::string Decimal(long double value, int decimals) {
  std::array<char, 512> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                          std::chars_format::fixed, decimals);
  if (error != std::errc{}) throw std::logic_error("a value too long to print");
  std::string text(buffer.data(), end);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text;
}

// With `digits` > 0: the largest decimal unit that leaves a value of at least 1, rounded. With 0:
// the unit that gives the fewest characters among those whose text `reads_back`.
template <typename ReadsBack>
std::string Format(long double value, std::span<const Unit> units, int digits,
                   const ReadsBack& reads_back) {
  std::string best = Decimal(value, 18) + " " + std::string(units.front().name);
  std::size_t best_length = std::numeric_limits<std::size_t>::max();
  for (const Unit& unit : units) {
    const long double scaled = value / static_cast<long double>(unit.factor);
    const bool smallest = &unit == &units.front();
    if (scaled < 1 && !smallest) continue;
    if (digits > 0) {
      if (unit.name.find('i') != std::string_view::npos && unit.name.back() == 'B') continue;
      const int magnitude = scaled < 1 ? 1 : 1 + static_cast<int>(std::floor(std::log10(scaled)));
      best = Decimal(scaled, std::max(0, digits - magnitude)) + " " + std::string(unit.name);
      continue;
    }
    for (int decimals = 0; decimals <= 18; ++decimals) {
      const std::string number = Decimal(scaled, decimals);
      if (number.size() > best_length) break;
      std::string text = number + " " + std::string(unit.name);
      if (!reads_back(text)) continue;
      best = std::move(text);
      best_length = number.size();
      break;
    }
  }
  return best;
}

}  // namespace

double ToSeconds(Time t) { return static_cast<double>(t.count()) / 1e9; }

Time FromSeconds(double seconds) {
  assert(seconds >= 0 && seconds < 9.2e9);
  return Time(std::llround(seconds * 1e9));
}

std::optional<Time> ParseDuration(std::string_view text) {
  const auto ns = ParseWhole(text, kDurations);
  return ns ? std::optional<Time>(*ns) : std::nullopt;
}

std::optional<double> ParseBitRate(std::string_view text) {
  const auto rate = Parse(text, kBitRates);
  if (!rate || *rate > static_cast<long double>(std::numeric_limits<double>::max())) {
    return std::nullopt;
  }
  return static_cast<double>(*rate);
}

std::optional<std::int64_t> ParseByteSize(std::string_view text) {
  return ParseWhole(text, kByteSizes);
}

std::string FormatDuration(Time t, int digits) {
  if (t == Time{0}) return "0 s";
  if (t < Time{0}) return fmt::format("-{}", FormatDuration(-t, digits));
  return Format(static_cast<long double>(t.count()), kDurations, digits,
                [t](const std::string& text) { return ParseDuration(text) == t; });
}

std::string FormatBitRate(double bits_per_s, int digits) {
  assert(std::isfinite(bits_per_s) && bits_per_s >= 0);
  return Format(static_cast<long double>(bits_per_s), kBitRates, digits,
                [bits_per_s](const std::string& text) { return ParseBitRate(text) == bits_per_s; });
}

std::string FormatByteSize(std::int64_t bytes, int digits) {
  if (bytes < 0) return fmt::format("-{}", FormatByteSize(-bytes, digits));
  return Format(static_cast<long double>(bytes), kByteSizes, digits,
                [bytes](const std::string& text) { return ParseByteSize(text) == bytes; });
}

}  // namespace spes::sim
