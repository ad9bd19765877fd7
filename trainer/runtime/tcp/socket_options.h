// What this system's TCP is asked for and can tell, beyond asio. Linux.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace spes::trainer {

// Throws std::invalid_argument, one line that names those there are, where the kernel does not have
// this congestion control or does not let this user have it. Empty: nothing is asked for.
void CheckCongestion(const std::string& name);

// Sends small frames at once, notices within `dead_after` that nothing is acknowledged any more,
// and uses this congestion control. Throws std::runtime_error.
void SetUpSocket(int fd, const std::string& congestion, std::chrono::milliseconds dead_after);

// What the kernel has counted since the connection began.
struct TcpCounters {
  std::int64_t sent_bytes = 0;  // payload, what was sent again included
  std::int64_t sent_segments = 0;
  std::int64_t retransmitted_bytes = 0;
  std::int64_t retransmitted_segments = 0;
  std::int64_t needless_segments = 0;  // of these, as the other side has said
  double rtt_s = 0;                    // smoothed
  double rtt_min_s = 0;                // of the last minutes
};
// Zeros where the kernel does not tell.
TcpCounters ReadCounters(int fd);

// Of an IPv4 segment, or an IPv6 one, with time stamps.
inline constexpr std::int64_t kHeaderBytes4 = 20 + 20 + 12, kHeaderBytes6 = 40 + 20 + 12;

}  // namespace spes::trainer
