// What both sides ask of their settings.
#pragma once

#include <chrono>

#include "trainer/runtime/tcp/tcp_runtime.h"

namespace spes::trainer {

// Throws std::invalid_argument, one line, on a setting out of its range, or a congestion control
// that this system does not have.
void CheckOptions(const TcpOptions& options);

inline std::chrono::milliseconds Milliseconds(Seconds s) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(s);
}

}  // namespace spes::trainer
