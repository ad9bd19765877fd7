#include "trainer/data/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "trainer/data/keyed_random.h"
#include "trainer/data/permutation.h"

namespace spes::trainer {
namespace {

enum Stream : std::uint64_t { kTable, kWeights, kText };

// The index i with Σ weights before i ≤ u < Σ weights through i, for weights that add up to 1.
template <class Range>
int Draw(const Range& weights, double u) {
  int i = 0;
  for (const double w : weights) {
    u -= w;
    if (u < 0) return i;
    ++i;
  }
  return i - 1;  // u was within rounding of the sum
}

double MinusPLogP(double p) { return p > 0 ? -p * std::log(p) : 0; }

}  // namespace

SyntheticLanguage::SyntheticLanguage(int symbols, std::uint64_t seed)
    : symbols_(symbols), seed_(seed) {
  assert(symbols >= 2 && symbols <= 256);
  for (std::uint64_t table = 0; table < 2; ++table) {
    std::vector<Row>& rows = table == 0 ? after_last_ : after_second_;
    rows.resize(static_cast<std::size_t>(symbols));
    for (int s = 0; s < symbols; ++s) {
      // Distinct successors, as far as there are so many symbols.
      const Permutation order(symbols, Key(seed, kTable, table, s));
      double sum = 0;
      for (int k = 0; k < kSuccessors; ++k) {
        rows[s].symbol[k] = static_cast<int>(order[k % symbols]);
        sum += rows[s].probability[k] = 0.1 + Uniform(Key(seed, kWeights, table, s), k);
      }
      for (double& p : rows[s].probability) p /= sum;
    }
  }
  Solve();
}

int SyntheticLanguage::SymbolsFor(std::int64_t vocabulary) {
  if (vocabulary < 2) {
    throw std::invalid_argument(
        fmt::format("the synthetic language needs a vocabulary of 2 or more, not {}", vocabulary));
  }
  return static_cast<int>(std::min<std::int64_t>(vocabulary, 32));
}

double SyntheticLanguage::Probability(int a, int b, int x) const {
  double p = kNoise / symbols_;
  for (int k = 0; k < kSuccessors; ++k) {
    if (after_last_[b].symbol[k] == x) p += (1 - kNoise) / 2 * after_last_[b].probability[k];
    if (after_second_[a].symbol[k] == x) p += (1 - kNoise) / 2 * after_second_[a].probability[k];
  }
  return p;
}

void SyntheticLanguage::Solve() {
  const int n = symbols_;
  const auto at = [n](int a, int b) { return static_cast<std::size_t>(a) * n + b; };
  pairs_.assign(static_cast<std::size_t>(n) * n, 1.0 / n / n);
  std::vector<double> next(pairs_.size());
  // The noise shrinks the distance by 1 − ε at least every two steps, in practice far more.
  for (double change = 1; change > 1e-13;) {
    std::fill(next.begin(), next.end(), 0.0);
    for (int b = 0; b < n; ++b) {
      double total = 0;
      for (int a = 0; a < n; ++a) {
        const double p = pairs_[at(a, b)], half = (1 - kNoise) / 2 * p;
        total += p;
        const Row& second = after_second_[a];
        for (int k = 0; k < kSuccessors; ++k) {
          next[at(b, second.symbol[k])] += half * second.probability[k];
        }
      }
      const Row& last = after_last_[b];
      for (int k = 0; k < kSuccessors; ++k) {
        next[at(b, last.symbol[k])] += (1 - kNoise) / 2 * total * last.probability[k];
      }
      for (int x = 0; x < n; ++x) next[at(b, x)] += kNoise / n * total;
    }
    change = 0;
    for (std::size_t i = 0; i < next.size(); ++i) change += std::abs(next[i] - pairs_[i]);
    pairs_.swap(next);
  }

  for (int b = 0; b < n; ++b) {
    double total = 0;
    std::vector<double> bigram(static_cast<std::size_t>(n));
    for (int a = 0; a < n; ++a) {
      const double p = pairs_[at(a, b)];
      total += p;
      for (int x = 0; x < n; ++x) {
        const double q = Probability(a, b, x);
        entropy_ += p * MinusPLogP(q);
        bigram[x] += p * q;
      }
    }
    for (const double p : bigram) bigram_entropy_ += total * MinusPLogP(p / total);
  }
}

std::string SyntheticLanguage::Sample(std::int64_t tokens) const {
  const std::uint64_t key = Key(seed_, kText);
  const int start = Draw(pairs_, Uniform(key, 0));
  int a = start / symbols_, b = start % symbols_;
  std::string text(static_cast<std::size_t>(tokens), '\0');
  for (std::int64_t t = 0; t < tokens; ++t) {
    int x = a;  // the first two symbols are the pair itself
    if (t == 1) x = b;
    if (t >= 2) {
      // One draw chooses the term, then, stretched to [0, 1) again, the symbol.
      double u = Uniform(key, static_cast<std::uint64_t>(t));
      if (u < kNoise) {
        x = static_cast<int>(u / kNoise * symbols_);
      } else {
        u = (u - kNoise) / (1 - kNoise) * 2;
        x = u < 1 ? after_last_[b].symbol[Draw(after_last_[b].probability, u)]
                  : after_second_[a].symbol[Draw(after_second_[a].probability, u - 1)];
      }
      a = b;
      b = x;
    }
    text[static_cast<std::size_t>(t)] = static_cast<char>(x);
  }
  return text;
}

}  // namespace spes::trainer
