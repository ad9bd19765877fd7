// The frame: all that ever crosses a connection is a sequence of these.
//
//   offset  bytes
//        0      4  magic "SPES"
//        4      2  version of this format
//        6      1  type
//        7      1  0; for later
//        8      8  number: of the message on its channel, or of the transfer that a chunk is of
//       16      8  length of the payload that follows
//       24      8  checksum: XXH3-64 of the 24 bytes before and the payload
//
// Numbers are little-endian. What a peer sends is data and nothing else: no code, no objects.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace spes::trainer {

inline constexpr std::uint16_t kWireVersion = 1;
inline constexpr std::size_t kFrameHeaderBytes = 32;

enum class FrameType : std::uint8_t {
  // While a connection is being let in; see handshake.h.
  kHello = 1,
  kChallenge,
  kProof,
  kWelcome,
  kRefuse,
  // Afterwards.
  kMessage,  // a message without parameters, whole
  kBegin,    // a message with parameters: its head; the payload comes in chunks
  kChunk,    // 8 bytes of offset, then bytes of the payload of the transfer `number`
  kAck,      // see link.h
  kBeat,
  kBye,
};

// What has come is not what this format allows. One line, without anything of the content.
class WireError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct FrameHeader {
  FrameType type = FrameType::kBeat;
  std::uint64_t number = 0;
  std::uint64_t length = 0;
  std::uint64_t checksum = 0;
};

using FrameHeaderBytes = std::array<std::byte, kFrameHeaderBytes>;

// The header of a frame with this payload, which lies in the pieces one after the other.
FrameHeaderBytes EncodeFrameHeader(FrameType type, std::uint64_t number,
                                   std::span<const std::span<const std::byte>> payload);

// Throws WireError on another magic, another version (which is named), an unknown type, a reserved
// byte that is not 0, and a length above `most`, the caller's limit for this type: before anything
// is allocated.
FrameHeader DecodeFrameHeader(std::span<const std::byte, kFrameHeaderBytes> bytes,
                              std::uint64_t most);

// Throws WireError unless the payload is the one that the header was made for.
void CheckPayload(std::span<const std::byte, kFrameHeaderBytes> header,
                  std::span<const std::span<const std::byte>> payload);

}  // namespace spes::trainer
