// How many bytes a message takes on the wire, headers of TCP and below not counted.
#pragma once

#include <cstdint>

#include "trainer/protocol/messages.h"

namespace spes::trainer {

// Every message is one frame: 32 bytes of header (trainer/wire/frame.h), a byte for its kind, its
// fixed fields, and lists with a 4-byte count each. A block adds 24 bytes (id, version, checksum,
// length, what there is) to its code, or to its elements where it has none; padding inside buffers
// is not sent. Optimiser moments are 8 bytes and twice the elements. A transfer in chunks adds
// their headers, which are not counted.
inline constexpr std::int64_t kFrameBytes = 32;
inline constexpr std::int64_t kBlockHeaderBytes = 24;

// A frame by what takes the room.
struct WireParts {
  std::int64_t shared = 0, experts = 0;  // values, or the codes that stand for them
  std::int64_t moments = 0;
  std::int64_t framing = 0;  // all the rest

  std::int64_t total() const { return shared + experts + moments + framing; }
  WireParts& operator+=(const WireParts& other);
  WireParts operator-(const WireParts& other) const;
};

// Block ids must be of `table`.
WireParts PartsOf(const Message& message, const BlockTable& table);

// The whole frame.
inline std::int64_t WireBytes(const Message& message, const BlockTable& table) {
  return PartsOf(message, table).total();
}

}  // namespace spes::trainer
