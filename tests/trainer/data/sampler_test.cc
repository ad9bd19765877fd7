#include "trainer/data/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/data/temporary_folder.h"

namespace spes::trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;

SamplerSetup MakeSetup(Sharing sharing, std::vector<std::int64_t> samples, int node, int nodes) {
  SamplerSetup setup;
  setup.sharing = sharing;
  for (std::size_t d = 0; d < samples.size(); ++d)
    setup.names.push_back(std::string("d").append(std::to_string(d)));
  setup.samples = std::move(samples);
  setup.node = node;
  setup.nodes = nodes;
  setup.seed = 42;
  return setup;
}

std::vector<SampleRef> Draw(Sampler& sampler, int n) {
  std::vector<SampleRef> drawn;
  for (int i = 0; i < n; ++i) drawn.push_back(sampler.Next());
  return drawn;
}

std::map<std::pair<int, std::int64_t>, int> Count(const std::vector<SampleRef>& samples) {
  std::map<std::pair<int, std::int64_t>, int> count;
  for (const SampleRef& s : samples) ++count[{s.domain, s.index}];
  return count;
}

TEST(Sampler, AnEpochHasEverySampleOnceAndTheNextAnotherOrder) {
  const auto sampler = MakeSampler(MakeSetup(Sharing::kShuffled, {70, 1, 29}, 0, 4));
  const auto first = Draw(*sampler, 100), second = Draw(*sampler, 100);
  for (const auto* epoch : {&first, &second}) {
    const auto count = Count(*epoch);
    ASSERT_EQ(count.size(), 100u);
    for (const auto& [sample, times] : count) {
      EXPECT_EQ(times, 1);
      EXPECT_LT(sample.second, (std::vector<std::int64_t>{70, 1, 29})[sample.first]);
    }
  }
  EXPECT_NE(first, second);
}

TEST(Sampler, NodesAndSeedsHaveDifferentOrders) {
  for (const Sharing sharing : {Sharing::kShuffled, Sharing::kByDomain, Sharing::kDirichlet}) {
    SamplerSetup setup = MakeSetup(sharing, {1000, 1000}, 0, 4);
    setup.dirichlet_alpha = 1e9;
    const auto base = Draw(*MakeSampler(setup), 50);
    EXPECT_EQ(base, Draw(*MakeSampler(setup), 50));
    setup.node = 2;  // by domain: of the same domain
    EXPECT_NE(base, Draw(*MakeSampler(setup), 50));
    setup.node = 0;
    setup.seed = 43;
    EXPECT_NE(base, Draw(*MakeSampler(setup), 50));
  }
}

TEST(Sampler, DisjointPartsAreEqualAndShareNothing) {
  const int nodes = 7;
  std::set<std::pair<int, std::int64_t>> all;
  std::vector<double> mean_index;
  for (int node = 0; node < nodes; ++node) {
    const auto sampler = MakeSampler(MakeSetup(Sharing::kDisjoint, {700, 75, 7}, node, nodes));
    const auto count = Count(Draw(*sampler, 100 + 10 + 1));  // one epoch
    ASSERT_EQ(count.size(), 111u);
    std::vector<int> per_domain(3);
    double sum = 0;
    for (const auto& [sample, times] : count) {
      EXPECT_EQ(times, 1);
      EXPECT_TRUE(all.insert(sample).second) << "in two parts";
      ++per_domain[static_cast<std::size_t>(sample.first)];
      if (sample.first == 0) sum += static_cast<double>(sample.second) / 100;
    }
    EXPECT_EQ(per_domain, (std::vector<int>{100, 10, 1}));
    mean_index.push_back(sum);
  }
  EXPECT_EQ(all.size(), 111u * nodes);
  // A part is spread over the text (mean 350 ± 20), not a stretch of it.
  for (const double mean : mean_index) EXPECT_NEAR(mean, 350, 100);
}

TEST(Sampler, ByDomainDrawsFromOneDomain) {
  for (int node = 0; node < 5; ++node) {
    const auto sampler = MakeSampler(MakeSetup(Sharing::kByDomain, {10, 20}, node, 5));
    const int size = node % 2 ? 20 : 10;
    const auto count = Count(Draw(*sampler, size));
    EXPECT_EQ(count.size(), static_cast<std::size_t>(size));
    for (const auto& [sample, times] : count) EXPECT_EQ(sample.first, node % 2);
  }
}

TEST(Sampler, DirichletDrawsByTheNodesWeightsAndEachDomainInEpochs) {
  const std::vector<std::int64_t> samples = {3000, 1000};
  SamplerSetup setup = MakeSetup(Sharing::kDirichlet, samples, 0, 4);
  setup.dirichlet_alpha = 1e6;
  const auto sampler = MakeSampler(setup);
  std::vector<std::vector<std::int64_t>> seen(2);
  for (const SampleRef& s : Draw(*sampler, 8000)) {
    seen[static_cast<std::size_t>(s.domain)].push_back(s.index);
  }
  // Proportional at large α: 6000 ± 39 · 4.
  EXPECT_NEAR(static_cast<double>(seen[0].size()), 6000, 160);
  for (std::size_t d = 0; d < 2; ++d) {
    const auto n = static_cast<std::size_t>(samples[d]);
    ASSERT_GE(seen[d].size(), n);
    const std::set<std::int64_t> epoch(seen[d].begin(), seen[d].begin() + samples[d]);
    EXPECT_EQ(epoch.size(), n);
  }
}

// Dirichlet(α·p): mean p, variance p (1 − p) / (α + 1).
TEST(DirichletWeights, HaveTheMomentsOfTheDistribution) {
  for (const double alpha : {0.05, 0.5, 5.0, 500.0}) {
    const int n = 20000;
    double sum = 0, square = 0;
    for (int key = 0; key < n; ++key) {
      const auto w = DirichletWeights({600, 300, 100}, alpha, static_cast<std::uint64_t>(key));
      ASSERT_NEAR(w[0] + w[1] + w[2], 1, 1e-12);
      sum += w[1];
      square += w[1] * w[1];
    }
    const double mean = sum / n, variance = square / n - mean * mean;
    const double expected = 0.3 * 0.7 / (alpha + 1);
    EXPECT_NEAR(mean, 0.3, 5 * std::sqrt(expected / n)) << alpha;
    EXPECT_NEAR(variance / expected, 1, 0.06) << alpha;
  }
}

TEST(DirichletWeights, TinyAlphaGivesOneDomainEach) {
  int second = 0;
  for (int key = 0; key < 1000; ++key) {
    const auto w = DirichletWeights({1, 1}, 1e-5, static_cast<std::uint64_t>(key));
    ASSERT_TRUE(std::isfinite(w[0]) && std::isfinite(w[1]));
    EXPECT_GT(std::max(w[0], w[1]), 0.999);
    second += w[1] > 0.5;
  }
  EXPECT_NEAR(second, 500, 80);
}

TEST(Sampler, CountersAreTheWholeState) {
  for (const Sharing sharing :
       {Sharing::kShuffled, Sharing::kDisjoint, Sharing::kByDomain, Sharing::kDirichlet}) {
    const SamplerSetup setup = MakeSetup(sharing, {30, 20}, 1, 4);
    const auto sampler = MakeSampler(setup), other = MakeSampler(setup);
    Draw(*sampler, 77);  // into a later epoch
    other->SetCounters(sampler->counters());
    EXPECT_EQ(Draw(*sampler, 200), Draw(*other, 200));
    // Backwards as well.
    const auto fresh = MakeSampler(setup);
    const auto start = Draw(*fresh, 10);
    other->SetCounters(MakeSampler(setup)->counters());
    EXPECT_EQ(Draw(*other, 10), start);
  }
}

TEST(Sampler, SaysWhatWouldFit) {
  const auto message = [](const SamplerSetup& setup) {
    return MessageOf<std::invalid_argument>([&] { MakeSampler(setup); });
  };
  EXPECT_THAT(message(MakeSetup(Sharing::kDisjoint, {50, 6}, 0, 7)),
              AllOf(HasSubstr("domain 'd1' has 6 training samples for 7 nodes"),
                    HasSubstr("at most 6 nodes")));
  EXPECT_THAT(message(MakeSetup(Sharing::kByDomain, {9, 9, 9}, 0, 2)),
              AllOf(HasSubstr("leave domain 'd2' without any"), HasSubstr("at least 3 nodes"),
                    HasSubstr("at most 2 domains")));
  EXPECT_THAT(message(MakeSetup(Sharing::kShuffled, {9}, 2, 2)), HasSubstr("node 2"));
  for (const double alpha : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    SamplerSetup setup = MakeSetup(Sharing::kDirichlet, {9}, 0, 2);
    setup.dirichlet_alpha = alpha;
    EXPECT_THAT(message(setup), HasSubstr("dirichlet_alpha"));
  }
}

}  // namespace
}  // namespace spes::trainer
