// What both sides ask of their settings.
#pragma once

#include <chrono>
#include <cstdint>

#include "trainer/runtime/tcp/tcp_runtime.h"

namespace spes::trainer {

// Throws std::invalid_argument, one line, on a setting out of its range, or a congestion control
// that this system does not have.
void CheckOptions(const TcpOptions& options);

// Of this machine, since 1970.
inline std::int64_t WallClockMicroseconds() {
  return std::chrono::system_clock::now().time_since_epoch() / std::chrono::microseconds(1);
}

// For last words.
inline constexpr Seconds kFarewell{3};

inline std::chrono::milliseconds Milliseconds(Seconds s) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(s);
}

}  // namespace spes::trainer
