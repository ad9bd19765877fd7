// TCP sequence numbers, which are 32 bits wide, over transfers of any length.
#pragma once

#include <cstdint>

namespace spes::sim {

// Whether sequence number `a` lies before `b`, modulo 2^32 (RFC 9293, section 3.4): right while
// they are less than 2 GiB apart.
inline bool SequenceBefore(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) < 0;
}

// Follows the segments that one end sends.
class SequenceTracker {
 public:
  // Takes note of a segment of `bytes` payload bytes and returns how many of them had been sent
  // before.
  std::int64_t Sent(std::uint32_t sequence, std::uint32_t bytes) {
    if (!started_) {
      started_ = true;
      next_ = sequence;
    }
    const std::uint32_t end = sequence + bytes;
    std::int64_t again = 0;
    if (SequenceBefore(sequence, next_)) {
      again = SequenceBefore(next_, end) ? next_ - sequence : bytes;
    }
    if (SequenceBefore(next_, end)) next_ = end;
    return again;
  }

 private:
  bool started_ = false;
  std::uint32_t next_ = 0;  // one past the highest byte sent
};

}  // namespace spes::sim
