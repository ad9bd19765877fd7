#include "trainer/data/baseline.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace spes::trainer {
namespace {

Batch OneRow(std::vector<std::int32_t> tokens) {
  Batch batch;
  batch.sequences = 1;
  batch.context = static_cast<std::int64_t>(tokens.size()) - 1;
  batch.tokens = std::move(tokens);
  return batch;
}

// a = 0, b = 1, c = 2. Training: a b a b a a, so c(a) = 4, c(b) = 2; pairs ab 2, ba 2, aa 1.
TEST(MeasurePairs, ByHand) {
  const MemoryTokens<std::vector<std::int32_t>> tokens({0, 1, 0, 1, 0, 0, 2, 2, 2});
  const std::vector<Batch> held_out = {OneRow({0, 1, 1}), OneRow({2, 0, 2})};
  const PairLoss loss = MeasurePairs(tokens, 6, 3, held_out);
  // Targets: b after a, b after b, a after c (never followed), c after a (never seen).
  const double ua = 5. / 9, ub = 3. / 9, uc = 1. / 9;
  EXPECT_NEAR(loss.unigram, -(2 * std::log(ub) + std::log(ua) + std::log(uc)) / 4, 1e-12);
  double best = 1e9;
  for (double w = 0; w < 1; w += 1e-5) {
    const double sum = std::log(w * 2 / 3 + (1 - w) * ub) + std::log((1 - w) * ub) + std::log(ua) +
                       std::log((1 - w) * uc);
    best = std::min(best, -sum / 4);
  }
  EXPECT_NEAR(loss.bigram, best, 1e-9);
}

// Held-out pairs that training never saw leave the unigram: weight 0.
TEST(MeasurePairs, NeverWorseThanTheUnigram) {
  const MemoryTokens<std::string> tokens("abababababababab");
  const std::vector<Batch> held_out = {OneRow({'a', 'a', 'a'}), OneRow({'b', 'b'})};
  const PairLoss loss = MeasurePairs(tokens, 16, 256, held_out);
  EXPECT_NEAR(loss.bigram, loss.unigram, 1e-9);
}

// The only pair (2, 1) lies across the border of two chunks of 65,536.
TEST(MeasurePairs, PairsMayCrossTheChunksThatAreRead) {
  std::vector<std::int32_t> ids(200000);
  ids[65535] = 2;
  ids[65536] = 1;
  const MemoryTokens<std::vector<std::int32_t>> tokens(ids);
  const std::vector<Batch> held_out = {OneRow({2, 1})};
  const PairLoss loss = MeasurePairs(tokens, 200000, 3, held_out);
  EXPECT_NEAR(loss.unigram, -std::log(2. / 200003), 1e-9);
  EXPECT_NEAR(loss.bigram, 0, 1e-9);
}

TEST(MeasurePairs, SaysNothingOfLargeVocabularies) {
  const MemoryTokens<std::vector<std::int32_t>> tokens({0, 1, 0});
  const std::vector<Batch> held_out = {OneRow({0, 1})};
  const PairLoss loss = MeasurePairs(tokens, 3, kLargestBigramVocabulary + 1, held_out);
  EXPECT_TRUE(std::isnan(loss.unigram));
  EXPECT_TRUE(std::isnan(loss.bigram));
  EXPECT_TRUE(std::isfinite(MeasurePairs(tokens, 3, kLargestBigramVocabulary, held_out).bigram));
}

}  // namespace
}  // namespace spes::trainer
