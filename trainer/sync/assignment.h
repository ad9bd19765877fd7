// The assignment problem: n rows to n columns, each to one, at the lowest cost.
#pragma once

#include <vector>

namespace spes::trainer {

// [row] → its column, such that Σ cost(row, column) is minimal. `cost` is row-major [n, n], finite,
// of either sign. The same numbers give the same answer where several are minimal. O(n³) time, O(n)
// memory. Source: the Hungarian method by shortest augmenting paths, doi:10.1007/BF02278710.
// Throws std::invalid_argument, one line, when `cost` has not n² entries.
std::vector<int> MinimalAssignment(const std::vector<double>& cost, int n);

}  // namespace spes::trainer
