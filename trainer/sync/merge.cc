#include "trainer/sync/merge.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

namespace spes::trainer {

namespace {

// The values of one expert's w1.
template <class T>
std::span<const T> W1(const World& world, int layer, int expert) {
  const BlockId id = *world.table->Expert(layer, expert);
  const BlockPart& part = (*world.table)[id].parts.front();
  return world.blocks[static_cast<std::size_t>(id)].data->template as<T>().subspan(
      static_cast<std::size_t>(part.offset), static_cast<std::size_t>(part.elements));
}

// Σ a·b in double with a fixed order: eight running sums, which the compiler turns into vectors. A
// library routine is not used because its order of summation may depend on where a row lies in a
// matrix.
template <class T>
double Dot(std::span<const T> a, std::span<const T> b) {
  double sums[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= a.size(); i += 8) {
    for (std::size_t lane = 0; lane < 8; ++lane) {
      sums[lane] += static_cast<double>(a[i + lane]) * static_cast<double>(b[i + lane]);
    }
  }
  double sum =
      ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  for (; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

template <class T>
std::vector<double> Similarity(const World& world, int layer) {
  const int n = world.table->experts();
  const auto at = [n](int i, int j) { return static_cast<std::size_t>(i * n + j); };
  std::vector<double> s(static_cast<std::size_t>(n * n), 1.0);
  std::vector<double> norm(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) {
    norm[static_cast<std::size_t>(i)] =
        std::sqrt(Dot<T>(W1<T>(world, layer, i), W1<T>(world, layer, i)));
  }
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < i; ++j) {
      const double norms = norm[static_cast<std::size_t>(i)] * norm[static_cast<std::size_t>(j)];
      s[at(i, j)] = s[at(j, i)] =
          norms > 0 ? Dot<T>(W1<T>(world, layer, i), W1<T>(world, layer, j)) / norms : 0;
    }
  }
  return s;
}

template <class T>
SharedBuffer Merged(const World& world, BlockId id, const std::vector<BlockId>& donors,
                    double alpha) {
  const auto value = [&](BlockId b) {
    return world.blocks[static_cast<std::size_t>(b)].data->as<T>();
  };
  auto merged = std::make_shared<Buffer>(world.table->Allocate(id));
  const std::span<T> out = merged->as<T>();
  const std::span<const T> own = value(id);
  const double share = 1.0 / static_cast<double>(donors.size());
  std::vector<double> mean(out.size(), 0.0);
  for (const BlockId donor : donors) {
    const std::span<const T> w = value(donor);
    for (std::size_t i = 0; i < out.size(); ++i) mean[i] += static_cast<double>(w[i]);
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double w = static_cast<double>(own[i]);
    out[i] = static_cast<T>(w + alpha * (mean[i] * share - w));
  }
  return merged;
}

}  // namespace

double MergeAlpha(const MergeConfig& config, std::int64_t t) {
  if (config.length <= 0) return 0;
  return config.alpha *
         (1 - std::min(static_cast<double>(t) / static_cast<double>(config.length), 1.0));
}

double MergeAlphaOfRound(const MergeConfig& config, std::int64_t previous, std::int64_t t) {
  if (config.interval <= 0 || t / config.interval == previous / config.interval) return 0;
  return MergeAlpha(config, t);
}

std::vector<double> ExpertSimilarity(const World& world, int layer) {
  return world.table->dtype() == DType::kFloat32 ? Similarity<float>(world, layer)
                                                 : Similarity<double>(world, layer);
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

World MergeExperts(const World& world, double alpha, int donors, Version version,
                   std::vector<std::vector<double>>* similarities) {
  const BlockTable& table = *world.table;
  World merged = world;
  if (similarities) similarities->assign(static_cast<std::size_t>(table.layers()), {});
  for (int layer = 0; layer < table.layers(); ++layer) {
    if (!table.Expert(layer, 0)) continue;
    const std::vector<double> s = ExpertSimilarity(world, layer);
    const auto nearest = NearestExperts(s, table.experts(), donors);
    if (similarities) (*similarities)[static_cast<std::size_t>(layer)] = s;
    for (int e = 0; e < table.experts(); ++e) {
      std::vector<BlockId> ids;
      for (const int donor : nearest[static_cast<std::size_t>(e)]) {
        ids.push_back(*table.Expert(layer, donor));
      }
      if (ids.empty()) continue;
      const BlockId id = *table.Expert(layer, e);
      merged.blocks[static_cast<std::size_t>(id)] = {
          version, table.dtype() == DType::kFloat32 ? Merged<float>(world, id, ids, alpha)
                                                    : Merged<double>(world, id, ids, alpha)};
    }
  }
  return merged;
}

}  // namespace spes::trainer
