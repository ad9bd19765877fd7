// Whatever the text, decoding refuses it or gives values of the block's size.
#include <gtest/gtest.h>

#include <random>
#include <stdexcept>

#include "tests/fuzz/damage.h"
#include "tests/trainer/sync/code_samples.h"

namespace spes::trainer {
namespace {

template <class T>
void Fuzz(DType dtype, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  int read = 0, refused = 0;
  for (const BlockSpec& block : SampleBlocks(dtype)) {
    const auto base = MixedBuffer<T>(block, 1), value = FiniteBuffer<T>(block, 2);
    for (const CodecConfig& config : AllConfigs()) {
      const auto code = Encode(config, dtype, block, value, base.get(), nullptr).code;
      for (int i = 0; i < 60; ++i) {
        // On the heap without room behind it, so that a byte read too far is noticed.
        const std::string text = fuzz::Damaged(std::string(*code), random);
        const std::vector<char> bytes(text.begin(), text.end());
        try {
          const auto decoded =
              Decode(config, dtype, block, {bytes.data(), bytes.size()}, base.get());
          ASSERT_EQ(decoded->bytes(), value->bytes());
          ++read;
        } catch (const std::invalid_argument& error) {
          ASSERT_EQ(std::string(error.what()).find('\n'), std::string::npos);
          ++refused;
        }
      }
    }
  }
  EXPECT_GT(read, 1000);
  EXPECT_GT(refused, 1000);
}

TEST(CodecFuzz, DecodingRefusesOrGivesABlock) {
  Fuzz<float>(DType::kFloat32, 1);
  Fuzz<double>(DType::kFloat64, 2);
}

TEST(CodecFuzz, ACompressedTextCannotClaimToBeLarge) {
  const DType dtype = DType::kFloat32;
  const BlockSpec big = BlockOf(dtype, {1 << 20}), small = BlockOf(dtype, {16});
  for (const auto kind : {CodecKind::kRaw, CodecKind::kTopK}) {
    const CodecConfig config{.kind = kind, .zstd = 3};
    const auto zeros = std::make_shared<Buffer>(big.buffer_elements * 4);
    const auto code = Encode({.zstd = 3}, dtype, big, zeros, nullptr, nullptr).code;
    ASSERT_LT(code->size(), 1000U);
    EXPECT_THROW(Decode(config, dtype, small, *code, nullptr), std::invalid_argument);
  }
}

}  // namespace
}  // namespace spes::trainer
