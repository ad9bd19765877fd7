// How many bytes a message takes on the wire, headers of TCP and below not counted.
#pragma once

#include <cstdint>

#include "trainer/protocol/messages.h"

namespace spes::trainer {

// Every message is one frame: 32 bytes of header (magic, version, type, ids, length, checksum), its
// fixed fields, and lists with a 4-byte count each. A block adds 24 bytes (id, version, checksum,
// length) to its elements; padding inside buffers is not sent.
inline constexpr std::int64_t kFrameBytes = 32;
inline constexpr std::int64_t kBlockHeaderBytes = 24;

// The whole frame. Block ids must be of `table`.
std::int64_t WireBytes(const Message& message, const BlockTable& table);

}  // namespace spes::trainer
