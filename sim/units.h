// Units of the whole program: virtual time, rates, sizes, and their text forms.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spes::sim {

// A span of virtual time, or a point in it counted from the start of the run. Whole nanoseconds, as
// in ns-3, so that both clocks agree exactly.
using Time = std::chrono::nanoseconds;

inline constexpr Time kNever = Time::max();

// Seconds as a floating-point number, for logs and formulas.
double ToSeconds(Time t);

// Nearest nanosecond. Negative, infinite and NaN input is the caller's error (asserted).
Time FromSeconds(double seconds);

// Text with its unit to a value; nothing when the text is not of that form. A bare number is
// refused, except 0. Units: ns us ms s min h d; bps kbps Mbps Gbps (decimal); B kB MB GB TB and KiB
// MiB GiB TiB.
std::optional<Time> ParseDuration(std::string_view text);
std::optional<double> ParseBitRate(std::string_view text);  // bit/s
std::optional<std::int64_t> ParseByteSize(std::string_view text);

// Text of a value with its unit: "40 ms", "2.5 min", "100 Mbps", "1.9 GB". With digits = 0 the
// shortest text that the parsers above read back to exactly this value, for files; with digits > 0
// rounded to that many significant digits, for people. Negative durations and sizes get a minus
// sign, which the parsers refuse; a rate must be finite and not negative (asserted).
std::string FormatDuration(Time t, int digits = 0);
std::string FormatBitRate(double bits_per_s, int digits = 0);
std::string FormatByteSize(std::int64_t bytes, int digits = 0);

}  // namespace spes::sim
