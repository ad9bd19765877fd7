// Quantities as people read them.
#pragma once

#include <string>

namespace spes::analysis {

// Seconds ≥ 0: "0.25 ms", "1.50 s", "45.0 s", "2 min 05 s", "3 h 07 min", "4 d 02 h"; "–" for
// what is not a finite number.
std::string FormatDuration(double seconds);

// Bytes ≥ 0 in binary multiples: "512 B", "1.50 KiB", "12.3 MiB", "640 GiB".
std::string FormatBytes(double bytes);

// Counts per unit ≥ 0 in powers of a thousand: "950", "12.3 k", "1.20 M".
std::string FormatCount(double count);

// "40.8 %".
std::string FormatPercent(double share);

}  // namespace spes::analysis
