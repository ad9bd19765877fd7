// Frames and the messages in them. The first byte of the input says what the others are.
#include <stdexcept>
#include <string_view>

#include "tests/fuzz/harness.h"
#include "tests/trainer/wire/head_check.h"
#include "tests/trainer/wire/samples.h"
#include "trainer/wire/frame.h"

namespace spes::fuzz {

namespace {

using trainer::DType;
using trainer::FrameHeaderBytes;
using Bytes = std::span<const std::byte>;

const std::shared_ptr<const trainer::BlockTable>& Table(DType dtype) {
  static const auto float32 = trainer::SampleTable(DType::kFloat32);
  static const auto float64 = trainer::SampleTable(DType::kFloat64);
  return dtype == DType::kFloat32 ? float32 : float64;
}

bool TakesHead(Bytes bytes, DType dtype) {
  return trainer::TakesHead({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                            Table(dtype));
}

void Require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

// One frame after the other, as they come over a connection. True where all are whole and good.
// A frame with a checksum that does not match is tried again with the right one.
bool TakesFrames(Bytes bytes) {
  constexpr std::uint64_t kMost = 1 << 16;
  bool good = !bytes.empty();
  while (bytes.size() >= trainer::kFrameHeaderBytes) {
    const auto head = bytes.first<trainer::kFrameHeaderBytes>();
    bytes = bytes.subspan(trainer::kFrameHeaderBytes);
    const trainer::FrameHeader header = trainer::DecodeFrameHeader(head, kMost);
    Require(header.length <= kMost, "a frame above the limit");
    if (header.length > bytes.size()) return false;
    const Bytes payload[] = {bytes.first(header.length)};
    bytes = bytes.subspan(header.length);
    const FrameHeaderBytes right = trainer::EncodeFrameHeader(header.type, header.number, payload);
    trainer::CheckPayload(right, payload);
    const bool matches = std::equal(right.begin(), right.end(), head.begin());
    try {
      trainer::CheckPayload(head, payload);
      Require(matches, "a checksum of another frame matches");
    } catch (const trainer::WireError&) {
      Require(!matches, "the checksum does not match");
      good = false;
    }
    if (header.type == trainer::FrameType::kMessage || header.type == trainer::FrameType::kBegin) {
      good = TakesHead(payload[0], DType::kFloat32) && good;
    }
  }
  return good && bytes.empty();
}

}  // namespace

bool FuzzWire(Bytes input) {
  if (input.empty()) return false;
  const Bytes rest = input.subspan(1);
  switch (static_cast<int>(input[0]) % 3) {
    case 0:
      return TakesHead(rest, DType::kFloat32);
    case 1:
      return TakesHead(rest, DType::kFloat64);
    default:
      try {
        return TakesFrames(rest);
      } catch (const trainer::WireError&) {
        return false;
      }
  }
}

}  // namespace spes::fuzz
