// Which sample comes next, under each rule of sharing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/data/config.h"

namespace spes::trainer {

// Sample `index` of domain `domain`.
struct SampleRef {
  int domain = 0;
  std::int64_t index = 0;
  bool operator==(const SampleRef&) const = default;
};

// What a sampler chooses from, and for whom.
struct SamplerSetup {
  Sharing sharing = Sharing::kShuffled;
  double dirichlet_alpha = 0.5;
  std::vector<std::string> names;     // of the domains, for messages
  std::vector<std::int64_t> samples;  // of each domain, ≥ 1
  int node = 0, nodes = 1;
  std::uint64_t seed = 0;
};

// An endless order of samples. Its whole state is a few counters. Not thread-safe.
class Sampler {
 public:
  virtual ~Sampler() = default;
  virtual SampleRef Next() = 0;
  // The state; SetCounters takes what counters() gave, of the same length and none negative.
  const std::vector<std::int64_t>& counters() const { return counters_; }
  void SetCounters(std::vector<std::int64_t> counters) { counters_ = std::move(counters); }

 protected:
  std::vector<std::int64_t> counters_;
};

// kShuffled, kDisjoint and kByDomain: the node's samples (all; an equal share of each domain, drawn
// without order; one domain) in an order of its own, each once per epoch, another order every
// epoch. kDirichlet: each sample's domain is drawn with the node's weights (DirichletWeights), its
// index from the domain's own order of that node. All orders are pseudo-random permutations by
// (seed, node, epoch), in constant memory. Throws std::invalid_argument, one line that says what
// would fit: kDisjoint with fewer samples in a domain than nodes, kByDomain with fewer nodes than
// domains, α not positive and finite, node outside 0 … nodes − 1.
std::unique_ptr<Sampler> MakeSampler(const SamplerSetup& setup);

// One draw from Dirichlet(α · shares), `shares` each domain's part of all samples (Hsu, Qi, Brown
// 2019, arXiv 1909.06335, section 3): every domain appears in proportion to its size on average;
// large α gives all nodes the same mixture, small α one domain each. Adds up to 1.
std::vector<double> DirichletWeights(const std::vector<std::int64_t>& samples, double alpha,
                                     std::uint64_t key);

}  // namespace spes::trainer
