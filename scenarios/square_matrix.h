// Square tables with a value from each site to each other.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/yaml_tree.h"

namespace spes::scenarios {

struct SquareMatrix {
  std::string file;
  std::vector<std::string> names;                          // in the order of the header
  std::vector<std::vector<std::optional<double>>> values;  // [from][to]; nothing: blank or "-"
  std::vector<Place> places;                               // [from] the line of its row

  // Index of `names`; nothing when there is no such name.
  std::optional<std::size_t> Find(std::string_view name) const;
};

// Reads a CSV with the names of the columns in the first row and those of the rows in the first
// column; what the corner says is no matter. Rows may have another order than columns. `what` is
// the value's name in messages. Throws std::invalid_argument with one line "file:line: …": as
// ReadCsv, no rows, a name that is empty or there twice, a row of the wrong length, a name that is
// a row or a column only (not square), a value that is no number from 0 to `max`.
SquareMatrix ReadSquareMatrix(const std::string& file, std::string_view what, double max);

// Throws std::invalid_argument with one line "file:line: …" naming a pair whose two values differ.
void CheckSymmetric(const SquareMatrix& matrix, std::string_view what);

}  // namespace spes::scenarios
