// Whole frames, for tests that say them.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "trainer/wire/frame.h"

namespace spes::trainer {

inline std::string FrameBytes(FrameType type, std::uint64_t number, std::string_view payload) {
  const std::array pieces{std::as_bytes(std::span(payload))};
  const FrameHeaderBytes header = EncodeFrameHeader(type, number, pieces);
  return std::string(reinterpret_cast<const char*>(header.data()), header.size()).append(payload);
}

}  // namespace spes::trainer
