#include "trainer/data/baseline.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace spes::trainer {
namespace {

constexpr std::int64_t kChunk = 1 << 16;

struct Counts {
  std::vector<std::int64_t> single;
  std::vector<std::int64_t> pairs;  // [first][second]
};

Counts Count(const TokenArray& tokens, std::int64_t train, std::int64_t vocabulary) {
  Counts counts{std::vector<std::int64_t>(static_cast<std::size_t>(vocabulary)),
                std::vector<std::int64_t>(static_cast<std::size_t>(vocabulary * vocabulary))};
  std::vector<std::int32_t> ids(kChunk);
  std::int64_t previous = -1;
  for (std::int64_t at = 0; at < train; at += kChunk) {
    const std::int64_t here = std::min(kChunk, train - at);
    tokens.Read(at, here, ids.data());
    for (std::int64_t i = 0; i < here; ++i) {
      const std::int64_t id = ids[static_cast<std::size_t>(i)];
      ++counts.single[static_cast<std::size_t>(id)];
      if (previous >= 0) ++counts.pairs[static_cast<std::size_t>(previous * vocabulary + id)];
      previous = id;
    }
  }
  return counts;
}

// The w in [0, 1] with the largest Σ log(w·p + (1 − w)·q): the sum is concave in w, so its slope
// has one sign change, found by halving.
double BestWeight(const std::vector<double>& p, const std::vector<double>& q) {
  const auto slope = [&](double w) {
    double sum = 0;
    for (std::size_t i = 0; i < p.size(); ++i) sum += (p[i] - q[i]) / (w * p[i] + (1 - w) * q[i]);
    return sum;
  };
  double low = 0, high = 1;
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    (slope(middle) > 0 ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

PairLoss MeasurePairs(const TokenArray& tokens, std::int64_t train, std::int64_t vocabulary,
                      std::span<const Batch> batches) {
  if (vocabulary > kLargestBigramVocabulary) return {std::nan(""), std::nan("")};
  const Counts counts = Count(tokens, train, vocabulary);
  std::vector<std::int64_t> followed(static_cast<std::size_t>(vocabulary));
  for (std::int64_t a = 0; a < vocabulary; ++a) {
    for (std::int64_t b = 0; b < vocabulary; ++b) followed[a] += counts.pairs[a * vocabulary + b];
  }

  std::vector<double> p, q;  // bigram and unigram probability of each target
  for (const Batch& batch : batches) {
    for (std::int64_t s = 0; s < batch.sequences; ++s) {
      const std::int32_t* row = batch.tokens.data() + s * (batch.context + 1);
      for (std::int64_t t = 0; t < batch.context; ++t) {
        const std::int64_t b = row[t], x = row[t + 1];
        q.push_back(static_cast<double>(counts.single[x] + 1) /
                    static_cast<double>(train + vocabulary));
        p.push_back(followed[b] > 0 ? static_cast<double>(counts.pairs[b * vocabulary + x]) /
                                          static_cast<double>(followed[b])
                                    : q.back());
      }
    }
  }
  const double w = BestWeight(p, q);
  PairLoss loss;
  for (std::size_t i = 0; i < p.size(); ++i) {
    loss.unigram -= std::log(q[i]);
    loss.bigram -= std::log(w * p[i] + (1 - w) * q[i]);
  }
  loss.unigram /= static_cast<double>(p.size());
  loss.bigram /= static_cast<double>(p.size());
  return loss;
}

}  // namespace spes::trainer
