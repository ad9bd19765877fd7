// What holds of every codec: what is read back, sizes, differences, error feedback, skipping.
#include "trainer/sync/codec.h"

#define XXH_INLINE_ALL
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <cmath>

#include "tests/trainer/sync/code_samples.h"
#include "trainer/sync/world.h"

namespace spes::trainer {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr DType kF32 = DType::kFloat32, kF64 = DType::kFloat64;

SharedBuffer Mixed(DType dtype, const BlockSpec& block, std::uint64_t key) {
  return dtype == kF32 ? MixedBuffer<float>(block, key) : MixedBuffer<double>(block, key);
}

// A copy with bytes other than zero between the parts.
SharedBuffer WithDirtyPadding(DType dtype, const BlockSpec& block, const Buffer& buffer) {
  auto dirty = std::make_shared<Buffer>(buffer.bytes());
  std::memset(dirty->data(), 0x41, static_cast<std::size_t>(buffer.bytes()));
  const auto size = static_cast<std::size_t>(ElementBytes(dtype));
  ForEachElement(block, [&](std::size_t, std::size_t at) {
    std::memcpy(dirty->data() + at * size, buffer.data() + at * size, size);
  });
  return dirty;
}

bool PaddingIsZero(DType dtype, const BlockSpec& block, const Buffer& buffer) {
  Buffer rest = buffer.Clone();
  const auto size = static_cast<std::size_t>(ElementBytes(dtype));
  ForEachElement(
      block, [&](std::size_t, std::size_t at) { std::memset(rest.data() + at * size, 0, size); });
  return SameBytes(rest, Buffer(buffer.bytes()));
}

TEST(Codec, DecodesToWhatEncodeReadBackWithinTheLargestSize) {
  for (const DType dtype : {kF32, kF64}) {
    for (const BlockSpec& block : SampleBlocks(dtype)) {
      for (const CodecConfig& config : AllConfigs()) {
        SCOPED_TRACE(NameOf(config) + " " + Name(dtype) + " " + std::to_string(block.elements));
        EXPECT_NO_THROW(Validate(config));
        Buffer residual = ZeroBuffer(dtype, block);
        const auto base = Mixed(dtype, block, 1);
        for (const std::uint64_t key : {2, 3, 4}) {
          const auto value = WithDirtyPadding(dtype, block, *Mixed(dtype, block, key));
          const CodedBlock coded = Encode(config, dtype, block, value, base.get(), &residual);
          EXPECT_TRUE(PaddingIsZero(dtype, block, *coded.decoded));
          EXPECT_TRUE(PaddingIsZero(dtype, block, residual));
          EXPECT_LE(static_cast<std::int64_t>(coded.code->size()),
                    LargestCode(config, dtype, block));
          const auto decoded = Decode(config, dtype, block, *coded.code, base.get());
          EXPECT_TRUE(SameBytes(*decoded, *coded.decoded));
        }
      }
    }
  }
}

TEST(Codec, RawLosesNoBitWhateverTheOptions) {
  for (const DType dtype : {kF32, kF64}) {
    for (const BlockSpec& block : SampleBlocks(dtype)) {
      for (CodecConfig config : AllConfigs()) {
        if (!IsLossless(config)) continue;
        SCOPED_TRACE(NameOf(config));
        const auto value = Mixed(dtype, block, 5), base = Mixed(dtype, block, 6);
        for (const int zstd : {config.zstd, 19}) {
          config.zstd = zstd;
          Buffer residual = ZeroBuffer(dtype, block);
          const CodedBlock coded = Encode(config, dtype, block, value, base.get(), &residual);
          EXPECT_EQ(coded.decoded, value);  // not even copied
          EXPECT_TRUE(SameBytes(*Decode(config, dtype, block, *coded.code, base.get()), *value));
          EXPECT_TRUE(SameBytes(residual, ZeroBuffer(dtype, block)));
        }
      }
    }
  }
}

TEST(Codec, RawIsTheValuesWithoutPadding) {
  const BlockSpec block = BlockOf(kF32, {5, 3});
  const auto value = MixedBuffer<float>(block, 1);
  const std::string code(*Encode({}, kF32, block, value, nullptr, nullptr).code);
  ASSERT_EQ(code.size(), 32U);
  EXPECT_EQ(std::memcmp(code.data(), value->data(), 20), 0);
  EXPECT_EQ(std::memcmp(code.data() + 20, value->data() + 64, 12), 0);
}

template <class T>
void DifferencesAreAddedToTheBase(DType dtype, CodecKind kind) {
  CodecConfig plain{.kind = kind}, config{.kind = kind, .differences = true};
  if (kind == CodecKind::kTopK) plain.keep = config.keep = 0.1;
  const BlockSpec block = BlockOf(dtype, {40, 90});
  const auto base = FiniteBuffer<T>(block, 1), value = FiniteBuffer<T>(block, 2);
  const auto b = ValuesOf<T>(block, *base), v = ValuesOf<T>(block, *value);
  const auto difference = Filled<T>(block, [&](std::size_t i) { return v[i] - b[i]; });
  const auto d =
      ValuesOf<T>(block, *Encode(plain, dtype, block, difference, nullptr, nullptr).decoded);
  const auto decoded =
      ValuesOf<T>(block, *Encode(config, dtype, block, value, base.get(), nullptr).decoded);
  for (std::size_t i = 0; i < d.size(); ++i) EXPECT_EQ(decoded[i], b[i] + d[i]) << i;
}

TEST(Codec, DifferencesAreAddedToTheBaseInTheModelsType) {
  for (const auto kind : {CodecKind::kBf16, CodecKind::kInt8, CodecKind::kInt4, CodecKind::kTopK}) {
    DifferencesAreAddedToTheBase<float>(kF32, kind);
    DifferencesAreAddedToTheBase<double>(kF64, kind);
  }
}

// −0, NaN with a payload and infinity stay where there is no difference; and nothing is sent.
TEST(Codec, WithoutADifferenceEveryBitStays) {
  const BlockSpec block = BlockOf(kF32, {9});
  const auto base = Filled<float>(block, [](std::size_t i) { return i % 2 ? -0.0F : 1.0F; });
  for (const auto kind :
       {CodecKind::kRaw, CodecKind::kBf16, CodecKind::kInt8, CodecKind::kInt4, CodecKind::kTopK}) {
    const CodecConfig config{.kind = kind, .differences = true, .skip_unchanged = true};
    const CodedBlock coded = Encode(config, kF32, block, base, base.get(), nullptr);
    EXPECT_TRUE(SameBytes(*coded.decoded, *base));
    EXPECT_EQ(*coded.code, "");
    EXPECT_TRUE(SameBytes(*Decode(config, kF32, block, "", base.get()), *base));
  }
  auto odd = std::make_shared<Buffer>(base->Clone());
  odd->as<float>()[3] = std::bit_cast<float>(0xFFC12345U);
  odd->as<float>()[4] = std::numeric_limits<float>::infinity();
  auto value = std::make_shared<Buffer>(odd->Clone());
  value->as<float>()[0] = 3;
  // Top-k keeps one element at least: NaN − NaN and ∞ − ∞ are the largest here.
  const CodecConfig raw{.differences = true, .skip_unchanged = true};
  EXPECT_EQ(*Encode(raw, kF32, block, odd, odd.get(), nullptr).code, "");
  EXPECT_TRUE(SameBytes(*Encode(raw, kF32, block, value, odd.get(), nullptr).decoded, *value));
}

TEST(Codec, UnchangedIsWhatTheBaseDoesNotFeel) {
  const BlockSpec block = BlockOf(kF32, {300});
  const auto base = Filled<float>(block, [](std::size_t) { return 1.0F; });
  // 1 + 2⁻²⁶ is 1 in float32, so a difference that error feedback still owes changes nothing yet.
  auto residual = std::make_shared<Buffer>(base->bytes());
  for (float& r : residual->as<float>()) r = 0x1p-26F;
  CodecConfig config{.kind = CodecKind::kInt8, .differences = true, .error_feedback = true};
  EXPECT_GT(Encode(config, kF32, block, base, base.get(), residual.get()).code->size(), 300U);
  config.skip_unchanged = true;
  int silent = 0;
  while (Encode(config, kF32, block, base, base.get(), residual.get()).code->empty()) {
    ASSERT_EQ(residual->as<float>()[0], 0x1p-26F) << "what is not sent stays owed";
    if (++silent == 10) break;
  }
  EXPECT_EQ(silent, 10);
}

// Of a constant: all that was read back in n codings is n·x less what is owed, at most half a step.
template <class T>
void NothingIsLostForGood(DType dtype, CodecConfig config, double owed) {
  const BlockSpec block = BlockOf(dtype, {50, 33});
  const auto value = FiniteBuffer<T>(block, 3);
  const auto x = ValuesOf<T>(block, *value);
  Buffer residual = ZeroBuffer(dtype, block);
  std::vector<double> sum(x.size());
  constexpr int rounds = 200;
  for (int n = 0; n < rounds; ++n) {
    const auto coded = Encode(config, dtype, block, value, nullptr, &residual);
    const auto d = ValuesOf<T>(block, *coded.decoded);
    for (std::size_t i = 0; i < d.size(); ++i) sum[i] += static_cast<double>(d[i]);
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(sum[i] / rounds, static_cast<double>(x[i]), owed / rounds) << NameOf(config);
  }
}

TEST(Codec, ErrorFeedbackLosesNothingForGood) {
  // Values up to 8; a step is at most (8 + half a step) / levels.
  NothingIsLostForGood<float>(kF32, {.kind = CodecKind::kInt8, .error_feedback = true}, 0.07);
  NothingIsLostForGood<float>(kF32, {.kind = CodecKind::kInt4, .error_feedback = true}, 1.3);
  NothingIsLostForGood<double>(kF64, {.kind = CodecKind::kInt4, .error_feedback = true}, 1.3);
  NothingIsLostForGood<float>(kF32, {.kind = CodecKind::kBf16, .error_feedback = true}, 0.04);
  // Each element waits until it owes the most: about as many rounds as 1 / keep × its share.
  NothingIsLostForGood<double>(
      kF64, {.kind = CodecKind::kTopK, .error_feedback = true, .keep = 0.25}, 16);
}

TEST(Codec, WithoutErrorFeedbackTheResidualIsNoConcern) {
  const BlockSpec block = BlockOf(kF32, {50});
  const auto value = FiniteBuffer<float>(block, 3);
  Buffer residual = FiniteBuffer<float>(block, 4)->Clone();
  const Buffer before = residual.Clone();
  const CodecConfig config{.kind = CodecKind::kInt4};
  EXPECT_EQ(*Encode(config, kF32, block, value, nullptr, &residual).code,
            *Encode(config, kF32, block, value, nullptr, nullptr).code);
  EXPECT_TRUE(SameBytes(residual, before));
}

TEST(Codec, DifferencesWithFeedbackReachAConstant) {
  const BlockSpec block = BlockOf(kF32, {256});
  const auto value = FiniteBuffer<float>(block, 3);
  const CodecConfig config{.kind = CodecKind::kInt4,
                           .differences = true,
                           .error_feedback = true,
                           .skip_unchanged = true};
  auto published = FiniteBuffer<float>(block, 4);
  Buffer residual = ZeroBuffer(kF32, block);
  for (int n = 0; n < 60; ++n) {
    published = Encode(config, kF32, block, value, published.get(), &residual).decoded;
  }
  const auto x = ValuesOf<float>(block, *value), p = ValuesOf<float>(block, *published);
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(p[i], x[i], 1e-3) << i;
}

TEST(Codec, WhatIsNotFiniteLeavesNoDebt) {
  const BlockSpec block = BlockOf(kF32, {8});
  const auto bad = Filled<float>(block, [](std::size_t i) {
    return i == 2 ? std::numeric_limits<float>::quiet_NaN() : i == 3 ? 3e38F : 1.0F;
  });
  const auto good = Filled<float>(block, [](std::size_t) { return 1.0F; });
  for (CodecConfig config : AllConfigs()) {
    if (!config.error_feedback) continue;
    Buffer residual = ZeroBuffer(kF32, block);
    const auto base = Filled<float>(block, [](std::size_t) { return -3e38F; });
    Encode(config, kF32, block, bad, base.get(), &residual);
    EXPECT_TRUE(AllFinite(kF32, residual)) << NameOf(config);
    const auto decoded = Encode(config, kF32, block, good, good.get(), &residual).decoded;
    EXPECT_TRUE(AllFinite(kF32, *decoded)) << NameOf(config);
  }
}

TEST(Codec, NotFiniteStaysNotFinite) {
  for (const CodecConfig& config : AllConfigs()) {
    const BlockSpec block = BlockOf(kF64, {5, 12});
    const auto base = FiniteBuffer<double>(block, 1);
    for (const double bad :
         {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
          std::numeric_limits<double>::quiet_NaN()}) {
      auto value = std::make_shared<Buffer>(FiniteBuffer<double>(block, 2)->Clone());
      value->as<double>()[block.parts[1].offset + 2] = bad;
      const auto decoded = Encode(config, kF64, block, value, base.get(), nullptr).decoded;
      EXPECT_FALSE(std::isfinite(decoded->as<double>()[block.parts[1].offset + 2]))
          << NameOf(config) << " " << bad;
    }
  }
}

TEST(Codec, SizesOfABigBlock) {
  const BlockSpec block = BlockOf(kF32, {1 << 16, 1 << 16});
  const auto value = FiniteBuffer<float>(block, 1);
  const auto share = [&](const CodecConfig& config) {
    const auto size = Encode(config, kF32, block, value, nullptr, nullptr).code->size();
    return static_cast<double>(size) / static_cast<double>(block.elements * 4);
  };
  EXPECT_EQ(share({}), 1);
  EXPECT_EQ(share({.kind = CodecKind::kBf16}), 0.5);
  EXPECT_LE(share({.kind = CodecKind::kInt8}), 0.26);
  EXPECT_LE(share({.kind = CodecKind::kInt4}), 0.135);
  EXPECT_LE(share({.kind = CodecKind::kTopK, .keep = 0.01}), 0.0135);
  EXPECT_LE(share({.zstd = 3}), 0.95);
}

TEST(Codec, ZstdIsNeverLongerByMoreThanAByteAndShortensDifferences) {
  const BlockSpec block = BlockOf(kF32, {1 << 14});
  const auto value = FiniteBuffer<float>(block, 1);
  auto next = std::make_shared<Buffer>(value->Clone());
  for (float& x : next->as<float>()) x *= 1 + 0x1p-18F;
  CodecConfig config{.differences = true, .zstd = 3};
  EXPECT_LT(Encode(config, kF32, block, next, value.get(), nullptr).code->size(),
            block.elements * 4 * 45 / 100);
  const auto noise = Filled<float>(block, [](std::size_t i) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(Key(1, i)));
  });
  EXPECT_EQ(static_cast<std::int64_t>(
                Encode({.zstd = 3}, kF32, block, noise, nullptr, nullptr).code->size()),
            LargestCode({.zstd = 3}, kF32, block));
}

// The format, and that no machine computes it otherwise.
TEST(Codec, TheSameBitsAsEver) {
  const std::uint64_t expected[2][5] = {
      {6378901910765428550U, 8288612844845292622U, 6549096597530593922U, 12899611589403921192U,
       754716005362415632U},
      {11834568239340136910U, 12224405712046378977U, 9372479427392406153U, 5788956182900836023U,
       13825615378687645410U}};
  for (const DType dtype : {kF32, kF64}) {
    const BlockSpec block = BlockOf(dtype, {96, 200, 33});
    for (int kind = 0; kind < 5; ++kind) {
      XXH64_hash_t hash = 0;
      for (const CodecConfig& config : AllConfigs()) {
        if (config.kind != static_cast<CodecKind>(kind) || config.zstd > 0) continue;
        Buffer residual = ZeroBuffer(dtype, block);
        const auto base = Mixed(dtype, block, 1);
        for (const std::uint64_t key : {2, 3}) {
          const auto coded =
              Encode(config, dtype, block, Mixed(dtype, block, key), base.get(), &residual);
          hash = XXH3_64bits_withSeed(coded.code->data(), coded.code->size(), hash);
          hash = XXH3_64bits_withSeed(coded.decoded->data(),
                                      static_cast<std::size_t>(coded.decoded->bytes()), hash);
          hash = XXH3_64bits_withSeed(residual.data(), static_cast<std::size_t>(residual.bytes()),
                                      hash);
        }
      }
      EXPECT_EQ(hash, expected[dtype == kF64][kind]) << Name(dtype) << " kind " << kind;
    }
  }
}

TEST(Codec, RefusesSettingsOutOfRangeOrWithoutEffect) {
  const auto refused = [](CodecConfig config, const char* why) {
    EXPECT_THAT([&] { Validate(config); }, ThrowsMessage<std::invalid_argument>(HasSubstr(why)));
  };
  refused({.kind = CodecKind::kInt8, .group = 0}, "group is 0");
  refused({.kind = CodecKind::kInt8, .group = (1 << 20) + 1}, "group is 1048577");
  refused({.group = 64}, "group has an effect on int8 and int4 only");
  refused({.kind = CodecKind::kTopK, .keep = 0}, "keep is 0");
  refused({.kind = CodecKind::kTopK, .keep = 1.5}, "keep is 1.5");
  refused({.kind = CodecKind::kTopK, .keep = std::nan("")}, "keep is nan");
  refused({.kind = CodecKind::kInt8, .keep = 0.5}, "keep has an effect on top-k only");
  refused({.skip_unchanged = true}, "skip_unchanged needs differences");
  refused({.zstd = 20}, "zstd is 20");
  refused({.zstd = -1}, "zstd is -1");
  EXPECT_NO_THROW(Validate({}));
}

TEST(Codec, OnlyBlocksWithoutElementsOrChangeHaveEmptyCodes) {
  const BlockSpec block = BlockOf(kF32, {5}), none = BlockOf(kF32, {0});
  const auto base = FiniteBuffer<float>(block, 1);
  const Buffer nothing = ZeroBuffer(kF32, none);
  for (const CodecConfig& config : AllConfigs()) {
    EXPECT_EQ(LargestCode(config, kF32, none), 0);
    EXPECT_EQ(Decode(config, kF32, none, "", &nothing)->bytes(), 0);
    EXPECT_THROW(Decode(config, kF32, none, "x", &nothing), std::invalid_argument);
    if (config.skip_unchanged) {
      EXPECT_TRUE(SameBytes(*Decode(config, kF32, block, "", base.get()), *base));
    } else {
      EXPECT_THROW(Decode(config, kF32, block, "", base.get()), std::invalid_argument);
    }
  }
}

TEST(Codec, RefusesBuffersOfAnotherSize) {
  const BlockSpec block = BlockOf(kF32, {5});
  const auto good = std::make_shared<Buffer>(64), bad = std::make_shared<Buffer>(20);
  Buffer residual(20);
  const CodecConfig config{.kind = CodecKind::kInt8, .differences = true, .error_feedback = true};
  using E = std::invalid_argument;
  EXPECT_THROW(Encode(config, kF32, block, bad, good.get(), nullptr), E);
  EXPECT_THROW(Encode(config, kF32, block, good, bad.get(), nullptr), E);
  EXPECT_THROW(Encode(config, kF32, block, good, nullptr, nullptr), E);
  EXPECT_THROW(Encode(config, kF32, block, good, good.get(), &residual), E);
  EXPECT_THROW(Decode(config, kF32, block, "", nullptr), E);
}

}  // namespace
}  // namespace spes::trainer
