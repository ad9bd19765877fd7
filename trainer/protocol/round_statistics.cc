#include "trainer/protocol/round_statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "trainer/sync/merge.h"

namespace spes::trainer {

namespace {

template <class T>
double Square(const Buffer& a, const Buffer& b) {
  const auto x = a.as<T>(), y = b.as<T>();
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double d = static_cast<double>(x[i]) - static_cast<double>(y[i]);
    sum += d * d;
  }
  return sum;
}

// The share of each expert in a layer's routed slots.
std::vector<double> Shares(const std::vector<std::int64_t>& routed) {
  const auto total = std::accumulate(routed.begin(), routed.end(), std::int64_t{0});
  std::vector<double> shares;
  for (const std::int64_t n : routed) {
    shares.push_back(total > 0 ? static_cast<double>(n) / static_cast<double>(total) : 0);
  }
  return shares;
}

}  // namespace

double SquaredDistance(DType dtype, const Buffer& a, const Buffer& b) {
  return dtype == DType::kFloat32 ? Square<float>(a, b) : Square<double>(a, b);
}

std::vector<double> SquaredMoves(const Offer& offer, const World& world) {
  std::vector<double> squares;
  for (const OfferedBlock& block : offer.blocks) {
    const Buffer& from = *world.blocks[static_cast<std::size_t>(block.id)].data;
    squares.push_back(SquaredDistance(world.table->dtype(), from, *block.data));
  }
  return squares;
}

std::vector<double> UpdateNorms(const World& before, const World& after) {
  std::vector<double> norms(before.blocks.size(), 0.0);
  for (std::size_t i = 0; i < norms.size(); ++i) {
    const Buffer& a = *before.blocks[i].data;
    const Buffer& b = *after.blocks[i].data;
    if (&a != &b) norms[i] = std::sqrt(SquaredDistance(before.table->dtype(), a, b));
  }
  return norms;
}

std::vector<analysis::RoutingRecord> RoutingRows(int round, const RoutingCounts& sums) {
  std::vector<analysis::RoutingRecord> rows;
  for (std::size_t layer = 0; layer < sums.routed.size(); ++layer) {
    const std::vector<double> shares = Shares(sums.routed[layer]);
    if (shares.empty()) continue;
    analysis::RoutingRecord row;
    row.round = round;
    row.layer = static_cast<std::int32_t>(layer);
    for (const double p : shares) {
      if (p > 0) row.entropy -= p * std::log(p);
      row.imbalance = std::max(row.imbalance, p * static_cast<double>(shares.size()));
    }
    if (sums.tokens > 0) {
      row.mean_token_entropy = sums.entropy_sum[layer] / static_cast<double>(sums.tokens);
    }
    rows.push_back(row);
  }
  return rows;
}

std::vector<analysis::ExpertRecord> ExpertRows(int round, const ExpertInputs& in) {
  std::vector<analysis::ExpertRecord> rows;
  const int experts = in.table.experts();
  for (int layer = 0; layer < in.table.layers(); ++layer) {
    if (!in.table.Expert(layer, 0)) continue;
    const auto l = static_cast<std::size_t>(layer);
    const std::vector<double> shares =
        l < in.routing.routed.size() ? Shares(in.routing.routed[l]) : std::vector<double>{};
    const std::vector<double>& similarity = in.update.similarities[l];
    const auto nearest = NearestExperts(similarity, experts, 1);
    for (int e = 0; e < experts; ++e) {
      const auto i = static_cast<std::size_t>(e);
      const auto block = static_cast<std::size_t>(*in.table.Expert(layer, e));
      analysis::ExpertRecord row;
      row.round = round;
      row.layer = layer;
      row.expert = e;
      row.owner = in.allocation.trainers(static_cast<BlockId>(block)).front();
      row.routed_share = i < shares.size() ? shares[i] : 0;
      row.update_norm = in.update.update_norms[block];
      row.nearest_similarity = std::numeric_limits<double>::quiet_NaN();
      if (!nearest[i].empty()) {
        row.nearest = nearest[i].front();
        row.nearest_similarity = similarity[i * static_cast<std::size_t>(experts) +
                                            static_cast<std::size_t>(row.nearest)];
      }
      row.merged_similarity = row.nearest_similarity;
      if (!nearest[i].empty() && !in.update.merged_similarities.empty()) {
        const double* after = in.update.merged_similarities[l].data() + e * experts;
        row.merged_similarity = -1;
        for (int other = 0; other < experts; ++other) {
          if (other != e) row.merged_similarity = std::max(row.merged_similarity, after[other]);
        }
      }
      row.staleness = round - in.delivered[block];
      rows.push_back(row);
    }
  }
  return rows;
}

}  // namespace spes::trainer
