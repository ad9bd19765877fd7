#include "trainer/sync/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "trainer/sync/alignment.h"
#include "trainer/sync/dot.h"

namespace spes::trainer {

namespace {

constexpr std::size_t kW2 = 2;  // index of the part in an expert's block

template <class T>
std::span<const T> PartValues(const World& world, BlockId id, const BlockPart& part) {
  return world.blocks[static_cast<std::size_t>(id)].data->template as<T>().subspan(
      static_cast<std::size_t>(part.offset), static_cast<std::size_t>(part.elements));
}

// What one expert is compared by: one or several stretches of numbers.
template <class T>
std::vector<std::span<const T>> Compared(const World& world, int layer, int expert,
                                         MergeSimilarity kind) {
  const BlockTable& table = *world.table;
  if (kind == MergeSimilarity::kRouter) {
    const std::string name = fmt::format("layers.{}.router", layer);
    const auto router = table.Find(name);
    if (!router) throw std::invalid_argument("experts compared by the router, but no " + name);
    const BlockPart& part =
        table[router->block].parts[static_cast<std::size_t>(router->part)];  // [E, D]
    const std::size_t width = static_cast<std::size_t>(part.elements / part.shape.front());
    return {PartValues<T>(world, router->block, part)
                .subspan(static_cast<std::size_t>(expert) * width, width)};
  }
  const BlockId id = *table.Expert(layer, expert);
  const std::vector<BlockPart>& parts = table[id].parts;
  if (kind == MergeSimilarity::kW1) return {PartValues<T>(world, id, parts.front())};
  if (kind == MergeSimilarity::kW2) return {PartValues<T>(world, id, parts[kW2])};
  std::vector<std::span<const T>> all;
  for (const BlockPart& part : parts) all.push_back(PartValues<T>(world, id, part));
  return all;
}

template <class T>
std::vector<double> Similarity(const World& world, int layer, MergeSimilarity kind) {
  const auto n = static_cast<std::size_t>(world.table->experts());
  std::vector<std::vector<std::span<const T>>> compared;
  for (std::size_t e = 0; e < n; ++e) {
    compared.push_back(Compared<T>(world, layer, static_cast<int>(e), kind));
  }
  const auto dot = [&](std::size_t i, std::size_t j) {
    double sum = 0;
    for (std::size_t s = 0; s < compared[i].size(); ++s) sum += Dot(compared[i][s], compared[j][s]);
    return sum;
  };
  std::vector<double> similarity(n * n, 1.0), norm(n);
  for (std::size_t i = 0; i < n; ++i) norm[i] = std::sqrt(dot(i, i));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double norms = norm[i] * norm[j];
      similarity[i * n + j] = similarity[j * n + i] = norms > 0 ? dot(i, j) / norms : 0;
    }
  }
  return similarity;
}

// Someone towards whom an expert moves.
struct Donor {
  BlockId block = 0;
  const std::vector<int>* order = nullptr;  // [row] → the donor's row for it; null: the same
};

// out = w + α · mean_j(w_j − w) for one part of block `id`, row by row.
template <class T>
void MoveTowards(const World& world, BlockId id, const BlockPart& part,
                 const std::vector<Donor>& donors, double alpha, std::span<T> out) {
  const std::span<const T> own = PartValues<T>(world, id, part);
  const auto rows = static_cast<std::size_t>(part.shape.front());
  const std::size_t width = own.size() / std::max<std::size_t>(rows, 1);
  const double share = alpha / static_cast<double>(donors.size());
  std::vector<double> distance(width);
  for (std::size_t r = 0; r < rows; ++r) {
    const std::span<const T> w = own.subspan(r * width, width);
    std::fill(distance.begin(), distance.end(), 0.0);
    for (const Donor& donor : donors) {
      const std::size_t row = donor.order ? static_cast<std::size_t>((*donor.order)[r]) : r;
      const std::span<const T> other =
          PartValues<T>(world, donor.block, part).subspan(row * width, width);
      for (std::size_t i = 0; i < width; ++i) {
        distance[i] += static_cast<double>(other[i]) - static_cast<double>(w[i]);
      }
    }
    for (std::size_t i = 0; i < width; ++i) {
      out[r * width + i] = static_cast<T>(static_cast<double>(w[i]) + share * distance[i]);
    }
  }
}

// Merges the experts of one layer: reads `world`, writes `merged`.
class LayerMerge {
 public:
  LayerMerge(const World& world, int layer, const MergeConfig& config, double alpha,
             const std::vector<double>& similarity)
      : world_(world), layer_(layer), config_(config), alpha_(alpha) {
    const int experts = world.table->experts();
    nearest_ = NearestExperts(similarity, experts, config.donors);
    for (int e = 0; e < experts; ++e) by_name_.push_back(e);
    if (config.mode == MergeMode::kReleased) {
      std::sort(by_name_.begin(), by_name_.end(),
                [](int a, int b) { return std::to_string(a) < std::to_string(b); });
    }
    place_ = Inverse(by_name_);
  }

  SharedBuffer Merged(int expert) {
    const BlockId id = *world_.table->Expert(layer_, expert);
    auto merged = std::make_shared<Buffer>(world_.table->Allocate(id));
    const std::vector<BlockPart>& parts = (*world_.table)[id].parts;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const std::vector<Donor> donors = DonorsOf(expert, p);
      if (world_.table->dtype() == DType::kFloat32) {
        Write<float>(id, parts[p], donors, *merged);
      } else {
        Write<double>(id, parts[p], donors, *merged);
      }
    }
    return merged;
  }

 private:
  std::vector<Donor> DonorsOf(int expert, std::size_t part) {
    const bool by_name = config_.mode == MergeMode::kReleased && part > 0;
    const int place = by_name ? place_[static_cast<std::size_t>(expert)] : expert;
    std::vector<Donor> donors;
    for (int other : nearest_[static_cast<std::size_t>(place)]) {
      if (by_name) other = by_name_[static_cast<std::size_t>(other)];
      donors.push_back({*world_.table->Expert(layer_, other),
                        config_.mode == MergeMode::kAligned ? &Order(expert, other) : nullptr});
    }
    return donors;
  }

  const std::vector<int>& Order(int expert, int other) {
    const auto found = orders_.find({expert, other});
    if (found != orders_.end()) return found->second;
    const auto [low, high] = std::minmax(expert, other);
    std::vector<int> order = AlignHiddenUnits(world_, *world_.table->Expert(layer_, low),
                                              *world_.table->Expert(layer_, high));
    orders_[{high, low}] = Inverse(order);
    orders_[{low, high}] = std::move(order);
    return orders_[{expert, other}];
  }

  template <class T>
  void Write(BlockId id, const BlockPart& part, const std::vector<Donor>& donors, Buffer& merged) {
    MoveTowards<T>(world_, id, part, donors, alpha_,
                   merged.as<T>().subspan(static_cast<std::size_t>(part.offset),
                                          static_cast<std::size_t>(part.elements)));
  }

  const World& world_;
  int layer_;
  const MergeConfig& config_;
  double alpha_;
  std::vector<std::vector<int>> nearest_;
  std::vector<int> by_name_, place_;  // kReleased: experts in the order of their names, and back
  std::map<std::pair<int, int>, std::vector<int>> orders_;  // kAligned: [expert, other]
};

}  // namespace

double MergeAlpha(const MergeConfig& config, std::int64_t t) {
  if (t >= config.length) return 0;
  const double x = static_cast<double>(t) / static_cast<double>(config.length);
  switch (config.decay) {
    case MergeDecay::kLinear:
      return config.alpha * (1 - x);
    case MergeDecay::kCosine:
      return config.alpha * (1 + std::cos(std::numbers::pi * x)) / 2;
    case MergeDecay::kConstant:
      return config.alpha;
  }
  return 0;
}

double MergeAlphaOfRound(const MergeConfig& config, std::int64_t previous, std::int64_t t) {
  if (config.interval <= 0 || t / config.interval == previous / config.interval) return 0;
  return MergeAlpha(config, t);
}

std::vector<double> ExpertSimilarity(const World& world, int layer, MergeSimilarity kind) {
  return world.table->dtype() == DType::kFloat32 ? Similarity<float>(world, layer, kind)
                                                 : Similarity<double>(world, layer, kind);
}

std::vector<std::vector<int>> NearestExperts(const std::vector<double>& similarity, int experts,
                                             int donors) {
  std::vector<std::vector<int>> nearest;
  const std::size_t k = static_cast<std::size_t>(std::max(0, std::min(donors, experts - 1)));
  for (int i = 0; i < experts; ++i) {
    const double* row = similarity.data() + static_cast<std::ptrdiff_t>(i) * experts;
    std::vector<int> order(static_cast<std::size_t>(experts));
    std::iota(order.begin(), order.end(), 0);
    order.erase(order.begin() + i);
    std::stable_sort(order.begin(), order.end(), [row](int a, int b) { return row[a] > row[b]; });
    order.resize(k);
    nearest.push_back(std::move(order));
  }
  return nearest;
}

World MergeExperts(const World& world, double alpha, const MergeConfig& config, Version version,
                   std::vector<std::vector<double>>* similarities) {
  const BlockTable& table = *world.table;
  World merged = world;
  if (similarities) similarities->assign(static_cast<std::size_t>(table.layers()), {});
  for (int layer = 0; layer < table.layers(); ++layer) {
    if (!table.Expert(layer, 0)) continue;
    const std::vector<double> s = ExpertSimilarity(world, layer, config.similarity);
    if (similarities) (*similarities)[static_cast<std::size_t>(layer)] = s;
    if (table.experts() < 2 || config.donors < 1) continue;
    LayerMerge merge(world, layer, config, alpha, s);
    for (int e = 0; e < table.experts(); ++e) {
      merged.blocks[static_cast<std::size_t>(*table.Expert(layer, e))] = {version, merge.Merged(e)};
    }
  }
  return merged;
}

}  // namespace spes::trainer
