// A table whose columns are known only when it is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace spes::analysis {

struct ValueColumn {
  using Numbers = std::vector<double>;  // NaN: no value
  using Wholes = std::vector<std::int64_t>;
  using Texts = std::vector<std::string>;

  std::string name;
  std::variant<Numbers, Wholes, Texts> values;

  std::size_t size() const;
};

// Columns of equal length.
struct ValueTable {
  std::vector<ValueColumn> columns;

  std::size_t rows() const { return columns.empty() ? 0 : columns[0].size(); }
};

// A column of numbers where every text is one: whole ones, or any, or empty for NaN; otherwise of
// the texts as they are.
ValueColumn ColumnOfTexts(std::string name, std::vector<std::string> texts);

// Lines of comma-separated values under a line of names. Texts with a comma, a quote or a line end
// stand in quotes; numbers have as many digits as they need to be read back exactly, and NaN is
// "nan".
std::string ToCsv(const ValueTable& table);

}  // namespace spes::analysis
