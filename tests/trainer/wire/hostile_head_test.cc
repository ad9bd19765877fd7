// Heads that no EncodeMessage has written.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "tests/trainer/wire/head_check.h"
#include "tests/trainer/wire/samples.h"

namespace spes::trainer {
namespace {

class HostileHead : public testing::TestWithParam<DType> {
 protected:
  const std::shared_ptr<const BlockTable> table_ = SampleTable(GetParam());
};

TEST_P(HostileHead, CutShortOrWithMoreBehindIsRefused) {
  for (const Sample& sample : SampleMessages(GetParam())) {
    const std::string head = EncodeMessage(sample.message, *table_).head;
    EXPECT_TRUE(TakesHead(head, table_)) << sample.name;
    for (std::size_t n = 0; n < head.size(); ++n) {
      EXPECT_FALSE(TakesHead(head.substr(0, n), table_)) << sample.name << ", " << n << " bytes";
    }
    EXPECT_FALSE(TakesHead(head + '\0', table_)) << sample.name;
  }
}

TEST_P(HostileHead, ChangedIsRefusedOrAnotherMessage) {
  int taken = 0, refused = 0;
  for (const Sample& sample : SampleMessages(GetParam())) {
    std::string head = EncodeMessage(sample.message, *table_).head;
    for (std::size_t i = 0; i < head.size(); ++i) {
      const char good = head[i];
      for (const int change : {1, 2, 4, 8, 16, 32, 64, 128, 255}) {
        head[i] = static_cast<char>(good ^ change);
        ++(TakesHead(head, table_) ? taken : refused);
      }
      head[i] = good;
    }
  }
  EXPECT_GT(taken, 1000);
  EXPECT_GT(refused, 1000);
}

INSTANTIATE_TEST_SUITE_P(Both, HostileHead, testing::Values(DType::kFloat32, DType::kFloat64),
                         [](const auto& info) { return std::string(Name(info.param)); });

class LyingHead : public testing::Test {
 protected:
  // Why a head is refused; nothing where it is taken. Counts what is asked for in `asked_`.
  std::string Refusal(const std::string& head, const WireLimits& limits = {}) {
    try {
      IncomingMessage(head, table_, limits, [this](std::int64_t bytes) {
        asked_ += bytes;
        return Buffer(bytes);
      });
    } catch (const WireError& error) {
      return error.what();
    }
    return {};
  }
  std::string Head(Message message) const {
    return EncodeMessage(std::move(message), *table_).head;
  }
  // Why it is refused with these bytes at `offset`.
  template <class T>
  std::string Changed(std::string head, std::size_t offset, T value) {
    std::memcpy(head.data() + offset, &value, sizeof(value));
    return Refusal(head);
  }
  SharedBuffer Values(BlockId id) const { return std::make_shared<Buffer>(table_->Allocate(id)); }

  const std::shared_ptr<const BlockTable> table_ = SampleTable(DType::kFloat32);
  std::int64_t asked_ = 0;
};

#define EXPECT_SAYS(reason, what) EXPECT_NE((reason).find(what), std::string::npos) << (reason)

TEST_F(LyingHead, LengthsOfBlocksAreHeldAgainstTheModelBeforeAnythingIsAskedFor) {
  const SharedMoments moments =
      std::make_shared<BlockMoments>(BlockMoments{Values(1), Values(1), 3});
  // Kind 1, count 4: block 0 at 5, its last word at 21; block 1 at 29, its last word at 45.
  const std::string head =
      Head(Admit{{{0, 0, Values(0)}, {1, 0, Values(1), nullptr, moments}}, {}, 0});
  const std::string code = Head(Admit{{{0, 0, Values(0)}, {1, 0, nullptr, MakeCode("x")}}, {}, 0});
  const auto most = (std::uint64_t{1} << 56) - 1;
  for (const std::uint64_t length : {most, most - 1, std::uint64_t{1} << 55, std::uint64_t{19},
                                     std::uint64_t{21}, std::uint64_t{0}}) {
    EXPECT_SAYS(Changed(head, 21, length), "another length");
    if (length < std::uint64_t{1} << 55) continue;
    EXPECT_SAYS(Changed(code, 45, length | std::uint64_t{1} << 56), "code is too long");
  }
  for (const std::uint64_t flags : {4, 128, 255}) {
    EXPECT_SAYS(Changed(head, 21, 20 | flags << 56), "flags");
  }
  EXPECT_SAYS(Changed(head, 21, std::uint64_t{1} << 63), "flags");
  EXPECT_SAYS(Changed(head, 53, std::int64_t{-1}), "below 0");
  EXPECT_SAYS(Changed(head, 53, std::numeric_limits<std::int64_t>::min()), "below 0");
  EXPECT_EQ(asked_, 0);
  EXPECT_EQ(Refusal(head), "");
  EXPECT_GT(asked_, 0);
}

TEST_F(LyingHead, LengthsOfCodesDoNotOverflow) {
  WireLimits limits;
  limits.code_bytes = [](BlockId) { return std::numeric_limits<std::int64_t>::max(); };
  // As many codes of 2^56 − 1 bytes as their lengths' sum overflows with.
  std::vector<BlockSpec> blocks;
  for (int i = 0; i < 130; ++i) {
    blocks.push_back(
        MakeBlock(DType::kFloat32, BlockKind::kShared, -1, -1, {{"b" + std::to_string(i), {1}}}));
  }
  const auto table = std::make_shared<BlockTable>(DType::kFloat32, std::move(blocks));
  std::vector<SentBlock> sent;
  for (BlockId id = 0; id < 130; ++id) {
    sent.push_back({id, 0, nullptr, MakeCode("")});
  }
  std::string head = EncodeMessage(Admit{sent, {}, 0}, *table).head;
  for (std::size_t i = 0; i < 130; ++i) {
    const std::uint64_t word = (std::uint64_t{2} << 56) - 1;
    std::memcpy(head.data() + 5 + 24 * i + 16, &word, 8);
  }
  try {
    IncomingMessage(head, table, limits);
    FAIL() << "taken";
  } catch (const WireError& error) {
    EXPECT_SAYS(std::string(error.what()), "too long");
  }
}

TEST_F(LyingHead, CountsAreHeldAgainstTheBytesThatAreThereBeforeRoomIsMade) {
  const char* longer = "longer than what is there";
  for (const std::uint32_t n : {1u << 10, 1u}) EXPECT_SAYS(Changed(Head(Leave{}), 1, n), longer);
  for (const std::uint32_t n : {1u << 20, 1u}) {
    EXPECT_SAYS(Changed(Head(Offer{}), 41, n), longer);  // steps
  }
  EXPECT_SAYS(Changed(Head(Join{}), 1, 100u), longer);
  Offer offer;
  offer.blocks = {{0, 1, Values(0)}};
  EXPECT_SAYS(Changed(Head(offer), 61, 2u), longer);
  EXPECT_SAYS(Changed(Head(Offer{}), 53, 2u), "cut short");  // layers: two counts are there
  const std::uint32_t most = ~0u;
  for (const std::uint32_t n : {most, most / 2}) {
    EXPECT_SAYS(Changed(Head(Leave{}), 1, n), "too long");
    for (const std::size_t offset : {41, 53, 57, 61}) {
      EXPECT_SAYS(Changed(Head(Offer{}), offset, n), "too long");
    }
  }
  EXPECT_EQ(asked_, 0);
}

TEST_F(LyingHead, IdsAreOfTheModelAndDiffer) {
  const std::string head = Head(Admit{{{0, 0, Values(0)}, {3, 0, Values(3)}}, {}, 0});
  for (const BlockId id : {-1, 7, 1 << 30, std::numeric_limits<BlockId>::min()}) {
    EXPECT_SAYS(Changed(head, 5, id), "lacks");
  }
  const std::string equal = Head(Admit{{{1, 0, Values(1)}, {5, 0, Values(5)}}, {}, 0});
  EXPECT_SAYS(Changed(equal, 29, BlockId{1}), "twice");
  EXPECT_EQ(Changed(equal, 29, BlockId{4}), "");  // of the same size

  Join join;
  join.trains = {4, 2};  // from 37 on
  EXPECT_SAYS(Changed(Head(join), 37, BlockId{2}), "twice");
  EXPECT_SAYS(Changed(Head(join), 37, BlockId{7}), "lacks");
  RoundOrder order;
  order.blocks = order.trains = std::vector<BlockId>{1, 2};  // the same in both lists
  EXPECT_EQ(Refusal(Head(Admit{{}, order, 0})), "");
  EXPECT_SAYS(Changed(Head(Admit{{}, order, 0}), 1 + 4 + 21 + 4, BlockId{2}), "twice");
}

TEST_F(LyingHead, FlagsAndEnumerationsAreInRange) {
  EXPECT_SAYS(Refusal(""), "cut short");
  EXPECT_SAYS(Refusal(std::string(1, '\0')), "unknown kind");
  EXPECT_SAYS(Refusal(std::string(1, '\x08')), "unknown kind");
  const std::string admit = Head(Admit{});  // the order's flags at 25
  EXPECT_EQ(Changed(admit, 25, std::uint8_t{2}), "");
  EXPECT_SAYS(Changed(admit, 25, std::uint8_t{3}), "flags");
  EXPECT_SAYS(Changed(admit, 25, std::uint8_t{16}), "flags");
  const std::string update = Head(Update{});
  for (const std::uint8_t known : {1, 2, 3}) EXPECT_EQ(Changed(update, 13, known), "");
  EXPECT_SAYS(Changed(update, 13, std::uint8_t{4}), "flag");
  EXPECT_SAYS(Changed(update, 18, std::uint8_t{1}), "cut short");
  EXPECT_SAYS(Changed(update, 18, std::uint8_t{2}), "flag");
  const std::string reject = Head(Reject{});
  for (int reason = 0; reason < 256; ++reason) {
    const bool known = reason == static_cast<int>(RejectReason::kUnexpected) ||
                       Name(static_cast<RejectReason>(reason)) != "unexpected";
    EXPECT_EQ(Changed(reject, 1, static_cast<std::uint8_t>(reason)).empty(), known) << reason;
  }
  // A version in an offer, a checksum elsewhere.
  Offer offer;
  offer.blocks = {{0, 1, Values(0)}};
  EXPECT_SAYS(Changed(Head(offer), 65 + 4, 1), "version");
  EXPECT_SAYS(Changed(Head(Admit{{{0, 0, Values(0)}}, {}, 0}), 5 + 8, std::uint64_t{1}),
              "checksum");
}

TEST_F(LyingHead, NothingIsCountedBelowZero) {
  for (const std::size_t offset : {1, 13}) {
    EXPECT_SAYS(Changed(Head(Offer{}), offset, std::int32_t{-1}), "below 0");  // round, steps
  }
  for (const std::size_t offset : {5, 17, 45}) {  // first step, tokens, routed tokens
    EXPECT_SAYS(Changed(Head(Offer{}), offset, std::int64_t{-1}), "below 0");
  }
  Join join;
  join.held.assign(7, 0);  // from 33 on
  EXPECT_EQ(Changed(Head(join), 33, Version{-1}), "");
  EXPECT_SAYS(Changed(Head(join), 33, Version{-2}), "below -1");
  join.held.clear();
  EXPECT_SAYS(Changed(Head(join) + std::string(8, '\0'), 29, 2u), "more or fewer");
}

TEST_F(LyingHead, LimitsAreTheReceivers) {
  WireLimits limits;
  limits.text_bytes = 3;
  EXPECT_EQ(Refusal(Head(Leave{"bye"}), limits), "");
  EXPECT_SAYS(Refusal(Head(Leave{"byes"}), limits), "too long");
  limits = {};
  limits.list_length = 1;
  Offer offer;
  offer.steps.resize(1);
  EXPECT_EQ(Refusal(Head(offer), limits), "");
  offer.steps.resize(2);
  EXPECT_SAYS(Refusal(Head(offer), limits), "too long");
  limits = {};
  limits.head_bytes = static_cast<std::int64_t>(Head(offer).size());
  EXPECT_EQ(Refusal(Head(offer), limits), "");
  --limits.head_bytes;
  EXPECT_SAYS(Refusal(Head(offer), limits), "head is too long");
  limits = {};
  limits.code_bytes = [](BlockId id) { return id == 1 ? 2 : 0; };
  const auto coded = [&](BlockId id, const char* code) {
    return Head(Admit{{{id, 0, nullptr, MakeCode(code)}}, {}, 0});
  };
  EXPECT_EQ(Refusal(coded(1, "12"), limits), "");
  EXPECT_EQ(Refusal(coded(0, ""), limits), "");
  EXPECT_SAYS(Refusal(coded(1, "123"), limits), "code is too long");
  EXPECT_SAYS(Refusal(coded(0, "1"), limits), "code is too long");
  // Without a limit of the caller's: the values and 4096 bytes.
  const std::string most(static_cast<std::size_t>(table_->Bytes(0)) + 4096, 'x');
  EXPECT_EQ(Refusal(coded(0, most.c_str())), "");
  EXPECT_SAYS(Refusal(coded(0, (most + "x").c_str())), "code is too long");
}

TEST_F(LyingHead, TextsAreOneLineOfWhatCanBeRead) {
  const std::string head = Head(Leave{"a\nb\x1b[0m\xff ü"});
  const Message message = IncomingMessage(head, table_, {}).Finish();
  EXPECT_EQ(std::get<Leave>(message).reason, "a?b?[0m? ü");
}

}  // namespace
}  // namespace spes::trainer
