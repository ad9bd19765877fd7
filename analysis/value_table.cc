#include "analysis/value_table.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <optional>
#include <utility>

namespace spes::analysis {

namespace {

// The whole text as a number.
template <class Number>
std::optional<Number> Parse(const std::string& text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || rest != end) return std::nullopt;
  return number;
}

template <class Number>
std::optional<std::vector<Number>> ParseAll(const std::vector<std::string>& texts) {
  std::vector<Number> numbers;
  for (const std::string& text : texts) {
    std::optional<Number> number = Parse<Number>(text);
    if (!number && text.empty() && std::numeric_limits<Number>::has_quiet_NaN) {
      number = std::numeric_limits<Number>::quiet_NaN();
    }
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

std::string Cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string Cell(double number) { return fmt::format("{}", number); }
std::string Cell(std::int64_t number) { return std::to_string(number); }

}  // namespace

std::size_t ValueColumn::size() const {
  return std::visit([](const auto& column) { return column.size(); }, values);
}

ValueColumn ColumnOfTexts(std::string name, std::vector<std::string> texts) {
  bool any = false;
  for (const std::string& text : texts) any = any || !text.empty();
  if (any) {
    if (auto wholes = ParseAll<std::int64_t>(texts)) return {std::move(name), std::move(*wholes)};
    if (auto numbers = ParseAll<double>(texts)) return {std::move(name), std::move(*numbers)};
  }
  return {std::move(name), std::move(texts)};
}

std::string ToCsv(const ValueTable& table) {
  std::string csv;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    csv += (c > 0 ? "," : "") + Cell(table.columns[c].name);
  }
  csv += '\n';
  for (std::size_t row = 0; row < table.rows(); ++row) {
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      if (c > 0) csv += ',';
      csv += std::visit([row](const auto& values) { return Cell(values[row]); },
                        table.columns[c].values);
    }
    csv += '\n';
  }
  return csv;
}

}  // namespace spes::analysis
