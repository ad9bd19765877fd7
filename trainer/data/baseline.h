// The loss of models that look at one token or at a pair.
#pragma once

#include <cstdint>
#include <span>

#include "trainer/data/batch.h"
#include "trainer/data/token_array.h"

namespace spes::trainer {

// Above this many token ids a table of pairs is too large (128 MiB of counts).
inline constexpr std::int64_t kLargestBigramVocabulary = 4096;

struct PairLoss {
  double unigram = 0, bigram = 0;  // nats per target; NaN beyond kLargestBigramVocabulary
};

// Counts the first `train` ids of `tokens` and their pairs, then measures the targets of `batches`.
// unigram(x) = (c(x) + 1) / (train + vocabulary); bigram(x | b) = w · c(b, x) / c(b) + (1 − w) ·
// unigram(x), unigram alone after a b that was never followed, with the one w in [0, 1] that is
// best on these targets (linear interpolation: Jelinek and Mercer 1980). Ids < vocabulary. Throws
// as TokenArray::Read.
PairLoss MeasurePairs(const TokenArray& tokens, std::int64_t train, std::int64_t vocabulary,
                      std::span<const Batch> batches);

}  // namespace spes::trainer
