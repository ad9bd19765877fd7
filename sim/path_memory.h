// What a TCP connection that stays open has learnt of its path by the end of a transfer.
#pragma once

#include <limits>

#include "sim/units.h"

namespace spes::sim {

struct PathMemory {
  static constexpr double kNone = std::numeric_limits<double>::infinity();

  double window = 0;         // of congestion, in bytes
  double threshold = kNone;  // of slow start, in bytes; kNone while nothing has ended one
  Time end{0};               // of the transfer
  Time timeout{0};           // of retransmission (RTO)
};

// What the next transfer begins with, in bytes.
struct WarmStart {
  double window = 0;
  double threshold = PathMemory::kNone;
};

// At `now`, not before memory.end: the window halves with each time-out of idleness, down to the
// initial one, and slow start leads back to three quarters of it at least (RFC 2861, section 3.2;
// net/ipv4/tcp_output.c of Linux, tcp_cwnd_restart). No effect of an idle time within a time-out.
WarmStart AfterIdle(const PathMemory& memory, Time now, double initial_window);

}  // namespace spes::sim
