// A language made up from a seed, of which the least possible loss is known.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace spes::trainer {

// A second-order Markov source over A symbols, the mixture transition distribution model (Raftery
// 1985, J. R. Stat. Soc. B 47:528):
//   P(x | a, b) = ε/A + (1 − ε) · (½ Q1(b, x) + ½ Q2(a, x)),   a then b then x,
// where every row of Q1 and Q2 has four random successors. The noise ε = 0.02 makes the chain
// ergodic. Small transformers learn it within about a hundred steps (the two terms need the
// embedding and one attention head), while no table of pairs can: the bigram knows only b.
class SyntheticLanguage {
 public:
  // `symbols` A: 2 … 256. Equal arguments give the same language.
  SyntheticLanguage(int symbols, std::uint64_t seed);

  // As many symbols as fit the vocabulary, at most 32. Throws std::invalid_argument when vocabulary
  // < 2.
  static int SymbolsFor(std::int64_t vocabulary);

  int symbols() const { return symbols_; }
  // P(x | a, b).
  double Probability(int a, int b, int x) const;
  // Entropy rate in nats per symbol: Σ π(a, b) · H(P(· | a, b)) with the stationary distribution π
  // by power iteration to 1e-13. No model's expected loss is lower.
  double EntropyRate() const { return entropy_; }
  // Cross-entropy of the best bigram model, nats per symbol: H(x | b) under π.
  double BigramEntropy() const { return bigram_entropy_; }

  // `tokens` ids from the stationary distribution on. Longer samples begin with the shorter ones.
  std::string Sample(std::int64_t tokens) const;

 private:
  static constexpr int kSuccessors = 4;
  static constexpr double kNoise = 0.02;

  struct Row {
    int symbol[kSuccessors];
    double probability[kSuccessors];  // sum 1
  };
  void Solve();  // stationary distribution and both entropies

  int symbols_;
  std::uint64_t seed_;
  std::vector<Row> after_last_, after_second_;  // Q1, Q2
  std::vector<double> pairs_;                   // π(a, b), row-major
  double entropy_ = 0, bigram_entropy_ = 0;
};

}  // namespace spes::trainer
