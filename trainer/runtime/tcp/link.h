// What keeps a session going once its connections are let in: acknowledgements, figures, signs of
// life, farewells.
//
// Control connection. Messages have numbers, from 1, per direction and session: kMessage a message
// without parameters, kBegin the head of one with parameters. The sender keeps each until it is
// acknowledged and sends all that are not again on a new connection; the receiver takes each number
// once, in order.
//
// Parameter connections. A transfer has the number of its kBegin. Its payload is cut into chunks of
// the size that the sender has named when it was let in, the last one shorter; each crosses any of
// the connections, whole. A side has one transfer at a time under way, and begins the next one when
// it is acknowledged as a whole.
//
// Acknowledgements state all that has arrived, not what is new, so any one of them may be lost. On
// a new control connection each side sends one before anything else, and no chunk before it has the
// other's: only what did not arrive is sent again.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace spes::trainer {

struct ChunkRange {
  std::uint32_t first = 0, end = 0;  // end: one past the last
  bool operator==(const ChunkRange&) const = default;
};

// A kAck frame with number 0: what has arrived.
struct Arrived {
  std::uint64_t message = 0;       // all up to this number
  std::uint64_t transfer = 0;      // the last one whose head has; 0: none yet
  bool complete = false;           // all of it has arrived
  std::vector<ChunkRange> chunks;  // otherwise: these, ascending, kMaxRanges at most
  bool operator==(const Arrived&) const = default;
};
inline constexpr std::size_t kMaxRanges = 4096;

// A kAck frame with a transfer's number: how it went, as its sender's kernel has counted over the
// connections for parameters. Sent when the last acknowledgement is there.
struct TransferFigures {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  std::int64_t wire_bytes = 0;  // payload, headers, retransmissions
  std::int64_t retransmitted_bytes = 0;
  std::int64_t retransmissions = 0;  // segments
  std::int64_t drops = 0;            // retransmissions without those that were not needed
  double rtt_min_s = kUnknown, rtt_mean_s = kUnknown;
};

// A kBeat frame. Times of the sender's own clock that never goes back, nanoseconds.
struct Beat {
  std::int64_t sent = 0;
  std::int64_t echo = 0;  // the other side's last beat here, 0: none yet,
  std::int64_t held = 0;  // and how long ago it came
  bool operator==(const Beat&) const = default;
};

// A kBye frame.
struct Bye {
  bool session_over = false;  // it cannot be taken up again
  std::string reason;         // one line
  bool operator==(const Bye&) const = default;
};

// No other frame of these types is longer.
inline constexpr std::uint64_t kMaxAckBytes = 32 + 8 * kMaxRanges;
inline constexpr std::uint64_t kBeatBytes = 24;
inline constexpr std::uint64_t kMaxByeBytes = 1024;

// Decoding throws WireError on anything else than what encoding writes.
std::string Encode(const Arrived& m);
std::string Encode(const TransferFigures& m);
std::string Encode(const Beat& m);
std::string Encode(const Bye& m);
Arrived DecodeArrived(std::string_view payload);
TransferFigures DecodeFigures(std::string_view payload);
Beat DecodeBeat(std::string_view payload);
Bye DecodeBye(std::string_view payload);

}  // namespace spes::trainer
