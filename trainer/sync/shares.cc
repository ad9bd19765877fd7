#include "trainer/sync/shares.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <tuple>

namespace spes::trainer {

namespace {

// Numbers from 0 to n − 1 by descending keys, ties to the lower one.
std::vector<std::size_t> Descending(const std::vector<double>& keys) {
  std::vector<std::size_t> order(keys.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return keys[a] > keys[b]; });
  return order;
}

}  // namespace

std::vector<int> SharesInProportion(const std::vector<double>& weights, int experts, int replicas) {
  const std::size_t nodes = weights.size();
  std::vector<int> shares(nodes, 0);
  std::vector<bool> full(nodes, false);
  std::vector<double> quota(nodes, 0);
  std::int64_t places = std::int64_t{experts} * replicas;
  // Relative to the largest, so that no sum overflows.
  const double largest = *std::max_element(weights.begin(), weights.end());
  for (bool again = true; again;) {
    double sum = 0;
    for (std::size_t n = 0; n < nodes; ++n) sum += full[n] ? 0 : weights[n] / largest;
    again = false;
    for (std::size_t n = 0; n < nodes; ++n) {
      if (!full[n]) quota[n] = static_cast<double>(places) * (weights[n] / largest) / sum;
    }
    for (std::size_t n = 0; n < nodes; ++n) {
      if (full[n] || quota[n] < experts) continue;
      full[n] = again = true;
      shares[n] = experts;
      places -= experts;
    }
  }
  std::vector<double> remainder(nodes, -1);
  for (std::size_t n = 0; n < nodes; ++n) {
    if (full[n]) continue;
    shares[n] = static_cast<int>(std::floor(quota[n]));
    remainder[n] = quota[n] - shares[n];
    places -= shares[n];
  }
  for (const std::size_t n : Descending(remainder)) {
    if (places <= 0) break;
    ++shares[n];
    --places;
  }
  return shares;
}

std::vector<std::vector<int>> Deal(const std::vector<int>& shares, int experts) {
  std::vector<std::vector<int>> trainers(static_cast<std::size_t>(experts));
  std::size_t place = 0;
  for (std::size_t n = 0; n < shares.size(); ++n) {
    for (int i = 0; i < shares[n]; ++i) {
      trainers[place++ % trainers.size()].push_back(static_cast<int>(n));
    }
  }
  return trainers;
}

std::vector<std::vector<int>> SharesOfEqualLoad(const std::vector<double>& load, int nodes,
                                                int replicas) {
  for (std::size_t e = 0; e < load.size(); ++e) {
    if (!(load[e] >= 0) || !std::isfinite(load[e])) {
      throw std::invalid_argument(fmt::format("expert {} has a load of {}", e, load[e]));
    }
  }
  std::vector<std::tuple<double, int, int>> by_node;  // load, experts, node
  for (int n = 0; n < nodes; ++n) by_node.emplace_back(0.0, 0, n);
  std::vector<std::vector<int>> trainers(load.size());
  for (const std::size_t e : Descending(load)) {
    std::partial_sort(by_node.begin(), by_node.begin() + replicas, by_node.end());
    for (auto node = by_node.begin(); node != by_node.begin() + replicas; ++node) {
      trainers[e].push_back(std::get<2>(*node));
      std::get<0>(*node) += load[e];
      ++std::get<1>(*node);
    }
  }
  return trainers;
}

}  // namespace spes::trainer
