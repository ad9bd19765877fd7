#include "trainer/wire/frame.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <bit>
#include <cstring>

namespace spes::trainer {

namespace {

static_assert(std::endian::native == std::endian::little, "frames are little-endian");

constexpr std::array<char, 4> kMagic = {'S', 'P', 'E', 'S'};
// Offsets of the header's fields.
constexpr std::size_t kVersionAt = 4, kTypeAt = 6, kReservedAt = 7, kNumberAt = 8, kLengthAt = 16,
                      kChecksumAt = 24;
static_assert(kChecksumAt + sizeof(std::uint64_t) == kFrameHeaderBytes);

using Pieces = std::span<const std::span<const std::byte>>;

std::uint64_t Length(Pieces payload) {
  std::uint64_t length = 0;
  for (const auto piece : payload) length += piece.size();
  return length;
}

// Of the header's bytes before the checksum, and the payload.
std::uint64_t Checksum(const std::byte* header, Pieces payload) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, header, kChecksumAt);
  for (const auto piece : payload) XXH3_64bits_update(&state, piece.data(), piece.size());
  return XXH3_64bits_digest(&state);
}

template <class T>
void Put(FrameHeaderBytes& header, std::size_t offset, const T& value) {
  std::memcpy(header.data() + offset, &value, sizeof(value));
}

template <class T>
T Get(std::span<const std::byte, kFrameHeaderBytes> header, std::size_t offset) {
  T value;
  std::memcpy(&value, header.data() + offset, sizeof(value));
  return value;
}

}  // namespace

FrameHeaderBytes EncodeFrameHeader(FrameType type, std::uint64_t number, Pieces payload) {
  FrameHeaderBytes header{};
  Put(header, 0, kMagic);
  Put(header, kVersionAt, kWireVersion);
  Put(header, kTypeAt, type);
  Put(header, kNumberAt, number);
  Put(header, kLengthAt, Length(payload));
  Put(header, kChecksumAt, Checksum(header.data(), payload));
  return header;
}

FrameHeader DecodeFrameHeader(std::span<const std::byte, kFrameHeaderBytes> bytes,
                              std::uint64_t most) {
  if (Get<std::array<char, 4>>(bytes, 0) != kMagic) {
    throw WireError("what comes is no frame of this program");
  }
  const auto version = Get<std::uint16_t>(bytes, kVersionAt);
  if (version != kWireVersion) {
    throw WireError("the other side speaks version " + std::to_string(version) +
                    " of the wire format, this one version " + std::to_string(kWireVersion));
  }
  const auto type = Get<std::uint8_t>(bytes, kTypeAt);
  if (type < static_cast<std::uint8_t>(FrameType::kHello) ||
      type > static_cast<std::uint8_t>(FrameType::kBye)) {
    throw WireError("a frame of an unknown type");
  }
  if (Get<std::uint8_t>(bytes, kReservedAt) != 0) {
    throw WireError("a frame whose reserved byte is not 0");
  }
  const FrameHeader header{static_cast<FrameType>(type), Get<std::uint64_t>(bytes, kNumberAt),
                           Get<std::uint64_t>(bytes, kLengthAt),
                           Get<std::uint64_t>(bytes, kChecksumAt)};
  if (header.length > most) {
    throw WireError("a frame of " + std::to_string(header.length) + " bytes, where at most " +
                    std::to_string(most) + " are allowed");
  }
  return header;
}

void CheckPayload(std::span<const std::byte, kFrameHeaderBytes> header, Pieces payload) {
  if (Get<std::uint64_t>(header, kLengthAt) != Length(payload)) {
    throw WireError("a frame's payload is not as long as its header says");
  }
  if (Get<std::uint64_t>(header, kChecksumAt) != Checksum(header.data(), payload)) {
    throw WireError("a frame's checksum does not match");
  }
}

}  // namespace spes::trainer
