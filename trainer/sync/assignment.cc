#include "trainer/sync/assignment.h"

#include <fmt/format.h>

#include <cstddef>
#include <limits>
#include <stdexcept>

namespace spes::trainer {

std::vector<int> MinimalAssignment(const std::vector<double>& cost, int n) {
  const auto size = static_cast<std::size_t>(n);
  if (n < 0 || cost.size() != size * size) {
    throw std::invalid_argument(
        fmt::format("{} costs for the assignment of {} rows to as many columns", cost.size(), n));
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::size_t none = size;  // no row; and the column from which each path starts
  // Potentials: cost(r, c) − row[r] − column[c] ≥ 0, and 0 for assigned pairs.
  std::vector<double> row(size + 1, 0.0), column(size + 1, 0.0);
  std::vector<std::size_t> row_of(size + 1, none);  // [column] → the row assigned to it
  std::vector<std::size_t> before(size + 1, none);  // [column] → the column before it on the path
  for (std::size_t r = 0; r < size; ++r) {
    // The shortest path, in reduced costs, from row r to a column that is still free (Dijkstra's).
    std::vector<double> distance(size, kInfinity);
    std::vector<bool> done(size + 1, false);
    std::size_t c = none;
    row_of[none] = r;
    do {
      done[c] = true;
      const std::size_t at = row_of[c];
      double step = kInfinity;
      std::size_t next = none;
      for (std::size_t j = 0; j < size; ++j) {
        if (done[j]) continue;
        const double reduced = cost[at * size + j] - row[at] - column[j];
        if (reduced < distance[j]) {
          distance[j] = reduced;
          before[j] = c;
        }
        if (distance[j] < step || next == none) {
          step = distance[j];
          next = j;
        }
      }
      for (std::size_t j = 0; j <= size; ++j) {
        if (done[j]) {
          row[row_of[j]] += step;
          column[j] -= step;
        } else if (j < size) {
          distance[j] -= step;
        }
      }
      c = next;
    } while (row_of[c] != none);
    for (; c != none; c = before[c]) row_of[c] = row_of[before[c]];
  }
  std::vector<int> assigned(size);
  for (std::size_t j = 0; j < size; ++j) assigned[row_of[j]] = static_cast<int>(j);
  return assigned;
}

}  // namespace spes::trainer
