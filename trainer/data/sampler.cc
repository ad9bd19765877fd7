#include "trainer/data/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <optional>
#include <stdexcept>

#include "trainer/data/keyed_random.h"
#include "trainer/data/permutation.h"

namespace spes::trainer {
namespace {

enum Stream : std::uint64_t { kOrder, kParts, kWeights, kDomain };

// Counts through 0 … n − 1 in a new order every epoch.
class EpochOrder {
 public:
  EpochOrder(std::int64_t n, std::uint64_t key) : n_(n), key_(key) {}
  std::int64_t operator[](std::int64_t counter) {
    if (const std::int64_t epoch = counter / n_; !order_ || epoch != epoch_) {
      order_.emplace(n_, Key(key_, epoch));
      epoch_ = epoch;
    }
    return (*order_)[counter % n_];
  }

 private:
  std::int64_t n_, epoch_ = -1;
  std::uint64_t key_;
  std::optional<Permutation> order_;
};

// The node's samples of each domain, one range behind the other under one order.
class PooledSampler final : public Sampler {
 public:
  // `sizes`: the node's samples per domain, 0 where it draws none. `parts`: empty, or per domain
  // the common order of which the node has the range from node · size on.
  PooledSampler(const SamplerSetup& setup, std::vector<std::int64_t> sizes,
                std::vector<Permutation> parts)
      : node_(setup.node),
        sizes_(std::move(sizes)),
        parts_(std::move(parts)),
        order_(std::accumulate(sizes_.begin(), sizes_.end(), std::int64_t{0}),
               Key(setup.seed, kOrder, setup.node)) {
    counters_ = {0};
  }

  SampleRef Next() override {
    std::int64_t index = order_[counters_[0]++];
    std::size_t d = 0;
    while (index >= sizes_[d]) index -= sizes_[d++];
    if (!parts_.empty()) index = parts_[d][node_ * sizes_[d] + index];
    return {static_cast<int>(d), index};
  }

 private:
  std::int64_t node_;
  std::vector<std::int64_t> sizes_;
  std::vector<Permutation> parts_;
  EpochOrder order_;
};

// counters(): samples drawn in all, then of each domain.
class DirichletSampler final : public Sampler {
 public:
  explicit DirichletSampler(const SamplerSetup& setup)
      : weights_(DirichletWeights(setup.samples, setup.dirichlet_alpha,
                                  Key(setup.seed, kWeights, setup.node))),
        key_(Key(setup.seed, kDomain, setup.node)) {
    for (std::size_t d = 0; d < setup.samples.size(); ++d) {
      orders_.emplace_back(setup.samples[d], Key(setup.seed, kOrder, setup.node, d));
    }
    counters_.assign(setup.samples.size() + 1, 0);
  }

  SampleRef Next() override {
    double u = Uniform(key_, static_cast<std::uint64_t>(counters_[0]++));
    std::size_t d = 0;
    // The last domain takes what rounding leaves.
    while (d + 1 < weights_.size() && u >= weights_[d]) u -= weights_[d++];
    return {static_cast<int>(d), orders_[d][counters_[d + 1]++]};
  }

 private:
  std::vector<double> weights_;
  std::uint64_t key_;
  std::vector<EpochOrder> orders_;
};

std::unique_ptr<Sampler> MakeDisjoint(const SamplerSetup& setup) {
  std::vector<std::int64_t> sizes;
  std::vector<Permutation> parts;
  for (std::size_t d = 0; d < setup.samples.size(); ++d) {
    if (setup.samples[d] < setup.nodes) {
      throw std::invalid_argument(fmt::format(
          "data.sharing disjoint: domain '{}' has {} training samples for {} nodes; at most {} "
          "nodes, more text or a shorter context would fit",
          setup.names[d], setup.samples[d], setup.nodes, setup.samples[d]));
    }
    sizes.push_back(setup.samples[d] / setup.nodes);
    parts.emplace_back(setup.samples[d], Key(setup.seed, kParts, d));
  }
  return std::make_unique<PooledSampler>(setup, std::move(sizes), std::move(parts));
}

std::unique_ptr<Sampler> MakeByDomain(const SamplerSetup& setup) {
  const auto domains = static_cast<int>(setup.samples.size());
  if (setup.nodes < domains) {
    throw std::invalid_argument(fmt::format(
        "data.sharing by_domain: {} nodes leave domain '{}' without any; at least {} nodes or at "
        "most {} domains would fit",
        setup.nodes, setup.names[setup.nodes], domains, setup.nodes));
  }
  std::vector<std::int64_t> sizes(setup.samples.size(), 0);
  const auto own = static_cast<std::size_t>(setup.node % domains);
  sizes[own] = setup.samples[own];
  return std::make_unique<PooledSampler>(setup, std::move(sizes), std::vector<Permutation>{});
}

// log of a Gamma(shape, 1) draw: Marsaglia and Tsang 2000 (doi:10.1145/358407.358414), with
// Gamma(a) = Gamma(a + 1) · U^(1/a) for a < 1, in logarithms since that underflows for small a.
double LogGamma(double shape, std::uint64_t key) {
  std::uint64_t counter = 0;
  const auto uniform = [&] { return 1 - Uniform(key, counter++); };  // in (0, 1]
  const double boost = shape < 1 ? std::log(uniform()) / shape : 0;
  const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    const double normal = radius * std::cos(2 * std::numbers::pi * uniform());
    const double v = std::pow(1 + c * normal, 3), u = uniform();
    if (v > 0 && std::log(u) < normal * normal / 2 + d - d * v + d * std::log(v)) {
      return std::log(d * v) + boost;
    }
  }
}

}  // namespace

std::vector<double> DirichletWeights(const std::vector<std::int64_t>& samples, double alpha,
                                     std::uint64_t key) {
  const auto total =
      static_cast<double>(std::accumulate(samples.begin(), samples.end(), std::int64_t{0}));
  std::vector<double> weights;
  for (std::size_t d = 0; d < samples.size(); ++d) {
    weights.push_back(LogGamma(alpha * static_cast<double>(samples[d]) / total, Key(key, d)));
  }
  const double largest = *std::max_element(weights.begin(), weights.end());
  double sum = 0;
  for (double& w : weights) sum += w = std::exp(w - largest);
  for (double& w : weights) w /= sum;
  return weights;
}

std::unique_ptr<Sampler> MakeSampler(const SamplerSetup& setup) {
  if (setup.node < 0 || setup.node >= setup.nodes) {
    throw std::invalid_argument(
        fmt::format("node {} is not one of {} nodes", setup.node, setup.nodes));
  }
  switch (setup.sharing) {
    case Sharing::kShuffled:
      return std::make_unique<PooledSampler>(setup, setup.samples, std::vector<Permutation>{});
    case Sharing::kDisjoint:
      return MakeDisjoint(setup);
    case Sharing::kByDomain:
      return MakeByDomain(setup);
    case Sharing::kDirichlet:
      if (!(setup.dirichlet_alpha > 0) || !std::isfinite(setup.dirichlet_alpha)) {
        throw std::invalid_argument(
            fmt::format("data.dirichlet_alpha is {}; it must be above 0", setup.dirichlet_alpha));
      }
      return std::make_unique<DirichletSampler>(setup);
  }
  throw std::logic_error("unknown sharing rule");
}

}  // namespace spes::trainer
