#include "scenarios/square_matrix.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/csv.h"

namespace spes::scenarios {

namespace {

bool Blank(const std::string& cell) { return cell.empty() || cell == "-"; }

void TakeHeader(const CsvRow& header, SquareMatrix& matrix) {
  for (std::size_t c = 1; c < header.cells.size(); ++c) {
    const std::string& name = header.cells[c];
    if (Blank(name)) FailAt(header.place, fmt::format("column {} has no name", c + 1));
    if (matrix.Find(name)) FailAt(header.place, fmt::format("two columns are {}", Quoted(name)));
    matrix.names.push_back(name);
  }
  if (matrix.names.empty()) {
    FailAt(header.place,
           "the first line must be the names of the columns after an empty cell, with commas");
  }
}

}  // namespace

std::optional<std::size_t> SquareMatrix::Find(std::string_view name) const {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names.begin());
}

SquareMatrix ReadSquareMatrix(const std::string& file, std::string_view what, double max) {
  const std::vector<CsvRow> rows = ReadCsv(file);
  if (rows.empty()) FailAt({file, 0}, "is empty; a matrix has names in its first row and column");
  SquareMatrix matrix;
  matrix.file = file;
  TakeHeader(rows.front(), matrix);
  const std::size_t n = matrix.names.size();
  matrix.values.resize(n);
  matrix.places.resize(n);
  for (std::size_t r = 1; r < rows.size(); ++r) {
    const CsvRow& row = rows[r];
    const std::string& name = row.cells.front();
    const std::optional<std::size_t> from = matrix.Find(name);
    if (!from) {
      FailAt(row.place,
             fmt::format("the matrix is not square: there is a row {} but no such column",
                         Quoted(name)));
    }
    if (!matrix.values[*from].empty()) {
      FailAt(row.place, fmt::format("another row is {} as well, in line {}", Quoted(name),
                                    matrix.places[*from].line));
    }
    if (row.cells.size() != n + 1) {
      FailAt(row.place, fmt::format("the matrix is not square: row {} has {} values for {} columns",
                                    Quoted(name), row.cells.size() - 1, n));
    }
    matrix.places[*from] = row.place;
    for (std::size_t to = 0; to < n; ++to) {
      const std::string& cell = row.cells[to + 1];
      std::optional<double>& value = matrix.values[*from].emplace_back();
      if (Blank(cell)) continue;
      value = CsvNumber(
          cell, row.place,
          fmt::format("{} from {} to {}", what, OneLine(name, 60), OneLine(matrix.names[to], 60)),
          max);
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (matrix.values[i].empty()) {
      FailAt({file, 0},
             fmt::format("the matrix is not square: there is a column {} but no such row",
                         Quoted(matrix.names[i])));
    }
  }
  return matrix;
}

void CheckSymmetric(const SquareMatrix& matrix, std::string_view what) {
  const auto text = [](const std::optional<double>& x) {
    return x ? fmt::format("{}", *x) : std::string("blank");
  };
  for (std::size_t i = 0; i < matrix.names.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const std::optional<double>&there = matrix.values[i][j], &back = matrix.values[j][i];
      if (there == back) continue;
      FailAt(
          matrix.places[i],
          fmt::format("the matrix is not symmetric: {} from {} to {} is {}, but {} the other way "
                      "in line {}",
                      what, OneLine(matrix.names[i], 60), OneLine(matrix.names[j], 60), text(there),
                      text(back), matrix.places[j].line));
    }
  }
}

}  // namespace spes::scenarios
