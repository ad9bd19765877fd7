// A transfer through the kernel's own TCP, timed as the packet level times its flows.
#pragma once

#include <cstdint>
#include <string>

#include "sim/netns/namespace.h"
#include "tests/kernel/kernel_path.h"

namespace spes::kernel {

struct TransferSettings {
  std::int64_t bytes = 0;            // payload, > 0
  int streams = 1;                   // connections that share it evenly
  std::string congestion = "cubic";  // what TCP_CONGESTION takes
};

struct TransferEnds {
  const sim::Namespace& sender;
  const sim::Namespace& receiver;
  std::string receiver_address;
  double in_flight_bytes = 0;  // the most that can be on the way and in queues
};

struct TransferResult {
  double seconds = 0;  // from the first write to the last payload byte at the receiver
  double goodput_bps = 0;
  std::int64_t retransmissions = 0;  // segments
  double rtt_min_s = 0;              // the smallest that TCP saw in any stream
  KernelPath::Drops drops;           // during the transfer; 0 where not over a KernelPath
  // The longest that any stream waited for the receiver's window, or for room in its own send
  // buffer, in seconds: near 0, or it was not the network that was measured.
  double window_limited_s = 0, buffer_limited_s = 0;
};

// Connects all streams, exchanges nothing, then starts the clock and sends. Segments carry 1448
// bytes and timestamps; buffers are ample, so that only the congestion window limits. Throws
// std::runtime_error when the kernel refuses something, when segments have another size, or when
// nothing arrives for 20 s.
TransferResult Transfer(const TransferEnds& ends, const TransferSettings& settings);
TransferResult Transfer(const KernelPath& path, const TransferSettings& settings);

}  // namespace spes::kernel
