#include "trainer/wire/message_codec.h"

#include <gtest/gtest.h>

#include <cstring>
#include <span>

#include "tests/trainer/wire/samples.h"
#include "trainer/protocol/wire_size.h"

namespace spes::trainer {
namespace {

class MessageCodec : public testing::TestWithParam<DType> {
 protected:
  const std::shared_ptr<const BlockTable> table_ = SampleTable(GetParam());
  const std::vector<Sample> samples_ = SampleMessages(GetParam());
};

TEST_P(MessageCodec, EveryMessageComesBackToTheBit) {
  for (const Sample& sample : samples_) {
    SCOPED_TRACE(sample.name);
    const OutgoingMessage out = EncodeMessage(sample.message, *table_);
    EXPECT_EQ(static_cast<std::size_t>(out.head[0]), sample.message.index() + 1);
    EXPECT_TRUE(Same(sample.message, RoundTrip(out, table_)));
  }
}

TEST_P(MessageCodec, SizesAreThoseThatAreCharged) {
  for (const Sample& sample : samples_) {
    SCOPED_TRACE(sample.name);
    const OutgoingMessage out = EncodeMessage(sample.message, *table_);
    EXPECT_EQ(static_cast<std::int64_t>(kFrameHeaderBytes + out.head.size()) + out.payload_bytes,
              WireBytes(sample.message, *table_));
    EXPECT_EQ(out.payload_bytes, static_cast<std::int64_t>(PayloadOf(out).size()));
    EXPECT_EQ(out.payload_bytes, IncomingMessage(out.head, table_, {}).payload_bytes());
  }
}

TEST_P(MessageCodec, PayloadIsSentFromAndReadIntoWhereItLies) {
  const Message message = samples_[2].message;  // holds the buffers, too
  const SentBlock& first = std::get<Admit>(message).blocks[0];
  const OutgoingMessage out = EncodeMessage(message, *table_);
  ASSERT_FALSE(out.payload.empty());
  EXPECT_EQ(out.payload[0].data(), first.data->data());

  IncomingMessage in(out.head, table_, {});
  const std::byte* place = in.payload()[0].data();
  IncomingMessage moved = std::move(in);
  const Message received = Receive(std::move(moved), PayloadOf(out));
  EXPECT_EQ(std::get<Admit>(received).blocks[0].data->data(), place);
}

TEST_P(MessageCodec, RunsWithoutPaddingBetweenThemAreOnePiece) {
  const auto pieces = [&](BlockId id) {
    const auto values = std::make_shared<Buffer>(table_->Allocate(id));
    return EncodeMessage(Admit{{{id, 0, values}}, {}, 0}, *table_).payload.size();
  };
  EXPECT_EQ(pieces(1), 3u);  // three parts, padding between
  EXPECT_EQ(pieces(2), 1u);  // three parts, none
  EXPECT_EQ(pieces(6), 0u);  // no elements
}

TEST_P(MessageCodec, BuffersArePaddedAndZeroAndComeFromTheCaller) {
  const OutgoingMessage out = EncodeMessage(samples_[2].message, *table_);
  std::int64_t asked = 0;
  IncomingMessage in(out.head, table_, {}, [&](std::int64_t bytes) {
    asked += bytes;
    return Buffer(bytes);
  });
  const Message received = std::move(in).Finish();
  std::int64_t there = 0;
  for (const SentBlock& block : std::get<Admit>(received).blocks) {
    std::vector<SharedBuffer> buffers;
    if (block.code) there += static_cast<std::int64_t>(block.code->size());
    if (block.data) buffers.push_back(block.data);
    if (block.moments) buffers.insert(buffers.end(), {block.moments->first, block.moments->second});
    for (const SharedBuffer& buffer : buffers) {
      EXPECT_EQ(buffer->bytes(), table_->Allocate(block.id).bytes());
      for (const std::byte b : buffer->as<std::byte>()) EXPECT_EQ(b, std::byte{0});
      there += buffer->bytes();
    }
  }
  EXPECT_EQ(asked, there);
  EXPECT_THROW(IncomingMessage(out.head, table_, {}, [](std::int64_t n) { return Buffer(n + 1); }),
               std::logic_error);
}

TEST_P(MessageCodec, WhatNoReceiverTakesIsNotSent) {
  const auto values = [&](BlockId id) { return std::make_shared<Buffer>(table_->Allocate(id)); };
  const auto refuses = [&](Message m) {
    EXPECT_THROW(EncodeMessage(std::move(m), *table_), std::invalid_argument);
  };
  refuses(Admit{{{7, 0, values(0)}}, {}, 0});
  refuses(Admit{{{-1, 0, values(0)}}, {}, 0});
  refuses(Admit{{{0, 0, nullptr}}, {}, 0});
  refuses(Admit{{{0, 0, values(1)}}, {}, 0});
  refuses(Admit{{{0, -1, values(0)}}, {}, 0});
  const auto moments = [&](SharedBuffer first, std::int64_t updates) {
    return std::make_shared<BlockMoments>(BlockMoments{std::move(first), values(0), updates});
  };
  refuses(Admit{{{0, 0, values(0), nullptr, moments(nullptr, 1)}}, {}, 0});
  refuses(Admit{{{0, 0, values(0), nullptr, moments(values(1), 1)}}, {}, 0});
  refuses(Admit{{{0, 0, values(0), nullptr, moments(values(0), -1)}}, {}, 0});
  refuses(Admit{{}, {{-1, 1, 1}}, 0});
  refuses(Join{"", "", 0, 0, 0, {0, 0}});
  refuses(Join{"", "", 0, 0, 0, std::vector<Version>(7, -2)});
  refuses(Join{"", "", 0, 0, 0, {}, {7}});
  Offer offer;
  offer.routing.routed = {{1, 2, 3}};
  refuses(offer);
  offer.routing.routed.assign(3, {});
  refuses(offer);
}

INSTANTIATE_TEST_SUITE_P(Both, MessageCodec, testing::Values(DType::kFloat32, DType::kFloat64),
                         [](const auto& info) { return std::string(Name(info.param)); });

std::string Hex(std::string_view bytes) {
  std::string hex;
  for (const char c : bytes) {
    hex += "0123456789abcdef"[static_cast<unsigned char>(c) >> 4];
    hex += "0123456789abcdef"[c & 15];
  }
  return hex;
}

// Another program must be able to read it: the bytes themselves.
TEST(MessageLayout, IsAsDocumented) {
  const auto table = SampleTable(DType::kFloat32);
  const auto head = [&](Message m) { return Hex(EncodeMessage(std::move(m), *table).head); };
  EXPECT_EQ(head(Applied{0x01020304, 1.0, -2.0}),
            "06"
            "04030201"
            "000000000000f03f"
            "00000000000000c0");
  EXPECT_EQ(head(Leave{"bye"}),
            "07"
            "03000000"
            "627965");
  EXPECT_EQ(head(Reject{RejectReason::kCorrupt, 5, "x"}),
            "04"
            "01"
            "05000000"
            "01000000"
            "78");
  EXPECT_EQ(head(Join{"a", "", 1, 2, 3, {-1, 0, 0, 0, 0, 0, 9}, {1}}),
            "01"
            "01000000"
            "61"
            "00000000"
            "0100000000000000"
            "0200000000000000"
            "03000000"
            "07000000"
            "ffffffff"
            "00000000"
            "00000000"
            "00000000"
            "00000000"
            "00000000"
            "09000000"
            "01000000"
            "01000000");
  const RoundOrder order{{1, 2, 3}, 4, MomentsSent::kAll, std::vector<BlockId>{5}, {}};
  const std::string order_hex =
      "01000000"
      "0200000000000000"
      "03000000"
      "04000000"
      "06"
      "01000000"
      "05000000";
  const auto code = MakeCode("12345");
  const auto values = std::make_shared<Buffer>(table->Allocate(0));
  const auto moments = std::make_shared<BlockMoments>(BlockMoments{values, values, 258});
  EXPECT_EQ(head(Admit{{{3, 9, nullptr, code}}, order, 7, true, 8, 9, true}),
            "02"
            "01000000"
            "03000000"
            "09000000"
            "0000000000000000"
            "0500000000000001" +
                order_hex +
                "0700000000000000"
                "03"
                "0800000000000000"
                "0900000000000000");
  EXPECT_EQ(head(Update{2, 0.5, true, {{0, 1, values, nullptr, moments}}, order}),
            "05"
            "02000000"
            "000000000000e03f"
            "01"
            "01000000"
            "00000000"
            "01000000"
            "0000000000000000"
            "1400000000000002"
            "0201000000000000"
            "01" +
                order_hex);
  Offer offer{{1, 2, 3}, 4, 1, -2, {}, {5, {{6}}, {1}}, {{0, 0xab, values}}};
  offer.steps.push_back({9, 1, 9, 1, -2, 3, 1, -2, 1, -2, 1, -2});
  EXPECT_EQ(head(offer),
            "03"
            "01000000"
            "0200000000000000"
            "03000000"
            "0400000000000000"
            "000000000000f03f"
            "00000000000000c0"
            "01000000"
            "0100000000000000"
            "000000000000f03f"
            "00000000000000c0"
            "0300000000000000"
            "000000000000f03f"
            "00000000000000c0"
            "000000000000f03f"
            "00000000000000c0"
            "000000000000f03f"
            "00000000000000c0"
            "0500000000000000"
            "01000000"
            "01000000"
            "0600000000000000"
            "01000000"
            "000000000000f03f"
            "01000000"
            "00000000"
            "00000000"
            "ab00000000000000"
            "1400000000000000");
}

// One block after the other; of each, values, first moments, second moments.
TEST(MessageLayout, PayloadIsBlockAfterBlock) {
  const auto table = SampleTable(DType::kFloat64);
  const auto filled = [&](BlockId id, double x) {
    const auto buffer = std::make_shared<Buffer>(table->Allocate(id));
    for (const BlockPart& part : (*table)[id].parts) {
      for (std::int64_t i = 0; i < part.elements; ++i) {
        buffer->as<double>()[static_cast<std::size_t>(part.offset + i)] = x++;
      }
    }
    return buffer;
  };
  const auto moments =
      std::make_shared<BlockMoments>(BlockMoments{filled(1, 118), filled(1, 136), 0});
  const std::string payload = PayloadOf(EncodeMessage(
      Admit{{{1, 0, filled(1, 100), nullptr, moments}, {0, 0, filled(0, 154)}}, {}, 0}, *table));
  ASSERT_EQ(payload.size(), 8 * (18 * 3 + 5u));
  for (std::size_t i = 0; i < payload.size() / 8; ++i) {
    double x;
    std::memcpy(&x, payload.data() + 8 * i, 8);
    EXPECT_EQ(x, 100.0 + static_cast<double>(i));
  }
}

}  // namespace
}  // namespace spes::trainer
