#include "analysis/statistics.h"

#include <algorithm>
#include <numeric>

namespace spes::analysis {

Spread SpreadOf(std::span<const double> values) {
  if (values.empty()) return {};
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {*min, sum / static_cast<double>(values.size()), *max};
}

double Share(double part, double whole) { return whole == 0 ? 0 : part / whole; }

}  // namespace spes::analysis
