#include "trainer/data/synthetic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

namespace spes::trainer {
namespace {

TEST(SyntheticLanguage, IsAProbabilityForEveryPair) {
  for (const int symbols : {2, 3, 17, 64}) {
    const SyntheticLanguage language(symbols, 9);
    for (int a = 0; a < symbols; ++a) {
      for (int b = 0; b < symbols; ++b) {
        double sum = 0;
        for (int x = 0; x < symbols; ++x) {
          EXPECT_GT(language.Probability(a, b, x), 0);
          sum += language.Probability(a, b, x);
        }
        ASSERT_NEAR(sum, 1, 1e-12);
      }
    }
  }
}

// −log P of the text under the true model tends to the entropy rate, and the text's pairs to the
// bigram entropy: computed from the transition table, measured on the text.
TEST(SyntheticLanguage, TextHasTheEntropyThatIsReported) {
  const SyntheticLanguage language(64, 3);
  const int n = 1 << 20;
  const std::string text = language.Sample(n);
  double loss = 0, square = 0;
  std::vector<double> pairs(64 * 64), singles(64);
  for (int t = 2; t < n; ++t) {
    const int a = text[static_cast<std::size_t>(t - 2)], b = text[static_cast<std::size_t>(t - 1)];
    const int x = text[static_cast<std::size_t>(t)];
    ASSERT_GE(x, 0);
    ASSERT_LT(x, 64);
    const double surprise = -std::log(language.Probability(a, b, x));
    loss += surprise;
    square += surprise * surprise;
    ++pairs[static_cast<std::size_t>(b * 64 + x)];
    ++singles[static_cast<std::size_t>(b)];
  }
  loss /= n;
  const double deviation = std::sqrt((square / n - loss * loss) / n);
  EXPECT_NEAR(loss, language.EntropyRate(), 5 * deviation);
  EXPECT_LT(deviation, 0.002);

  double bigram = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (pairs[i] > 0) bigram -= pairs[i] / n * std::log(pairs[i] / singles[i / 64]);
  }
  // Counting from the text itself is too good by about free parameters / 2n = 0.002.
  EXPECT_NEAR(bigram, language.BigramEntropy(), 0.005);
}

// With two symbols the stationary distribution of pairs has a closed form: π(01) = π(10), and the
// four balance equations give the rest.
TEST(SyntheticLanguage, EntropyRateOfTwoSymbolsByHand) {
  const SyntheticLanguage language(2, 1);
  const double p00 = language.Probability(0, 0, 1), p11 = language.Probability(1, 1, 0);
  const double p01 = language.Probability(0, 1, 0), p10 = language.Probability(1, 0, 1);
  // Leaving 00 balances coming back from 10; leaving 11 balances coming from 01.
  const double r00 = (1 - p10) / p00, r11 = (1 - p01) / p11;  // per unit of π(01) = π(10)
  const double unit = 1 / (2 + r00 + r11);
  const auto h = [](double p) { return -p * std::log(p) - (1 - p) * std::log(1 - p); };
  EXPECT_NEAR(language.EntropyRate(), unit * (r00 * h(p00) + r11 * h(p11) + h(p01) + h(p10)),
              1e-12);
}

TEST(SyntheticLanguage, RewardsLookingBackTwoSymbols) {
  for (std::uint32_t seed = 0; seed < 5; ++seed) {
    const SyntheticLanguage language(32, seed);
    EXPECT_LT(language.EntropyRate(), language.BigramEntropy() - 0.5);
    EXPECT_LT(language.BigramEntropy(), std::log(32.0));
    EXPECT_GT(language.EntropyRate(), 0.5);
  }
}

TEST(SyntheticLanguage, DependsOnTheSeedAlone) {
  const SyntheticLanguage a(64, 1), again(64, 1), other(64, 2);
  EXPECT_EQ(a.Sample(500), again.Sample(500));
  EXPECT_EQ(a.Sample(500), a.Sample(700).substr(0, 500));
  EXPECT_NE(a.Sample(500), other.Sample(500));
  EXPECT_EQ(a.Sample(1).size(), 1u);
}

TEST(SyntheticLanguage, StaysWithinTheVocabulary) {
  EXPECT_EQ(SyntheticLanguage::SymbolsFor(2), 2);
  EXPECT_EQ(SyntheticLanguage::SymbolsFor(20), 20);
  EXPECT_EQ(SyntheticLanguage::SymbolsFor(151665), 32);
  EXPECT_THROW(SyntheticLanguage::SymbolsFor(1), std::invalid_argument);
  for (const char c : SyntheticLanguage(5, 1).Sample(2000)) ASSERT_LT(c, 5);
}

}  // namespace
}  // namespace spes::trainer
