#include "trainer/wire/frame.h"

#define XXH_INLINE_ALL
#include <gtest/gtest.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

namespace spes::trainer {
namespace {

using Pieces = std::vector<std::span<const std::byte>>;

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string Refusal(const FrameHeaderBytes& header, std::uint64_t most = 1000) {
  try {
    DecodeFrameHeader(header, most);
  } catch (const WireError& error) {
    return error.what();
  }
  return {};
}

// A header of these fields, whatever its checksum.
FrameHeaderBytes With(std::size_t offset, std::byte value) {
  FrameHeaderBytes header = EncodeFrameHeader(FrameType::kMessage, 7, {});
  header[offset] = value;
  return header;
}

TEST(Frame, HeaderComesBack) {
  const std::string text = "some payload";
  const Pieces pieces = {Bytes(text)};
  for (int type = 1; type <= static_cast<int>(FrameType::kBye); ++type) {
    const auto bytes = EncodeFrameHeader(static_cast<FrameType>(type), ~0ull - 5, pieces);
    const FrameHeader header = DecodeFrameHeader(bytes, text.size());
    EXPECT_EQ(static_cast<int>(header.type), type);
    EXPECT_EQ(header.number, ~0ull - 5);
    EXPECT_EQ(header.length, text.size());
    EXPECT_NO_THROW(CheckPayload(bytes, pieces));
  }
}

TEST(Frame, LayoutIsAsDocumented) {
  const auto bytes = EncodeFrameHeader(FrameType::kChunk, 0x0102030405060708, Pieces{Bytes("abc")});
  const std::string expected("SPES\x01\0\x08\0\x08\x07\x06\x05\x04\x03\x02\x01\x03\0\0\0\0\0\0\0",
                             24);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), 24), expected);
  std::uint64_t checksum;
  std::memcpy(&checksum, bytes.data() + 24, 8);
  EXPECT_EQ(checksum, XXH3_64bits((expected + "abc").data(), 27));
}

TEST(Frame, ChecksumIsOfTheBytesNotOfThePieces) {
  const std::string text(1000, 'x');
  const std::string_view view = text;
  const auto whole = EncodeFrameHeader(FrameType::kBegin, 1, Pieces{Bytes(text)});
  const Pieces parts = {
      Bytes(view.substr(0, 1)), {}, Bytes(view.substr(1, 500)), Bytes(view.substr(501))};
  EXPECT_EQ(whole, EncodeFrameHeader(FrameType::kBegin, 1, parts));
  EXPECT_NO_THROW(CheckPayload(whole, parts));
}

TEST(Frame, EveryFlippedBitIsNoticed) {
  std::string text = "a payload of some bytes";
  const auto good = EncodeFrameHeader(FrameType::kMessage, 3, Pieces{Bytes(text)});
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    auto bad = good;
    bad[bit / 8] ^= std::byte{1} << bit % 8;
    EXPECT_THROW(CheckPayload(bad, Pieces{Bytes(text)}), WireError) << bit;
  }
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    text[bit / 8] ^= static_cast<char>(1 << bit % 8);
    EXPECT_THROW(CheckPayload(good, Pieces{Bytes(text)}), WireError) << bit;
    text[bit / 8] ^= static_cast<char>(1 << bit % 8);
  }
  EXPECT_THROW(CheckPayload(good, Pieces{Bytes(text.substr(1))}), WireError);
  EXPECT_THROW(CheckPayload(good, Pieces{Bytes(text + "x")}), WireError);
  EXPECT_NO_THROW(CheckPayload(good, Pieces{Bytes(text)}));
}

TEST(Frame, PayloadIsAsLongAsItsHeaderSaysWhateverTheChecksum) {
  auto header = EncodeFrameHeader(FrameType::kMessage, 3, Pieces{Bytes("abcd")});
  std::array<std::byte, 27> checked;  // the header's bytes that count, and "abc"
  std::copy_n(header.begin(), 24, checked.begin());
  std::memcpy(checked.data() + 24, "abc", 3);
  const std::uint64_t checksum = XXH3_64bits(checked.data(), checked.size());
  std::memcpy(header.data() + 24, &checksum, sizeof(checksum));
  EXPECT_THROW(CheckPayload(header, Pieces{Bytes("abc")}), WireError);
}

TEST(Frame, WhatIsNoFrameIsRefused) {
  EXPECT_EQ(Refusal(With(0, std::byte{'S'})), "");
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NE(Refusal(With(i, std::byte{'x'})), "") << i;
  EXPECT_NE(Refusal(With(6, std::byte{0})), "");
  EXPECT_NE(Refusal(With(6, std::byte{12})), "");
  EXPECT_NE(Refusal(With(6, std::byte{255})), "");
  EXPECT_NE(Refusal(With(7, std::byte{1})), "");
  EXPECT_NE(Refusal({}), "");
}

TEST(Frame, AnotherVersionIsNamed) {
  const std::string low = Refusal(With(4, std::byte{9})), high = Refusal(With(5, std::byte{1}));
  EXPECT_NE(low.find("version 9"), std::string::npos) << low;
  EXPECT_NE(low.find("version " + std::to_string(kWireVersion)), std::string::npos) << low;
  EXPECT_NE(high.find("version 257"), std::string::npos) << high;
}

TEST(Frame, LengthHasALimit) {
  FrameHeaderBytes header = EncodeFrameHeader(FrameType::kMessage, 0, {});
  const auto with_length = [&](std::uint64_t length) {
    std::memcpy(header.data() + 16, &length, 8);
    return header;
  };
  EXPECT_EQ(Refusal(with_length(1000)), "");
  EXPECT_NE(Refusal(with_length(1001)), "");
  EXPECT_NE(Refusal(with_length(1ull << 63)), "");
  EXPECT_NE(Refusal(with_length(~0ull)), "");
  EXPECT_EQ(Refusal(with_length(0), 0), "");
  EXPECT_EQ(Refusal(with_length(~0ull), ~0ull), "");
}

}  // namespace
}  // namespace spes::trainer
