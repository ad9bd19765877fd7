#include "scenarios/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <utility>

#include "scenarios/text_file.h"

namespace spes::scenarios {

namespace {

// Takes a cell and the comma after it off `rest`; false when it was the last one.
bool TakeCell(std::string_view& rest, const Place& place, std::string& cell) {
  rest = Trimmed(rest);
  std::size_t end = 0;  // of the cell in `rest`
  if (rest.starts_with('"')) {
    std::size_t at = 1;
    for (;; ++at) {
      at = rest.find('"', at);
      if (at == std::string_view::npos) FailAt(place, "a quote is not closed");
      if (at + 1 == rest.size() || rest[at + 1] != '"') break;
      ++at;  // a doubled one
    }
    for (std::size_t i = 1; i < at; ++i) {
      cell += rest[i];
      if (rest[i] == '"') ++i;
    }
    end = rest.find_first_not_of(" \t", at + 1);
    if (end == std::string_view::npos) end = rest.size();
    if (end < rest.size() && rest[end] != ',') {
      FailAt(place,
             fmt::format("{} follows a quoted cell; a comma must", Quoted(rest.substr(end))));
    }
  } else {
    end = std::min(rest.find(','), rest.size());
    cell = Trimmed(rest.substr(0, end));
  }
  const bool more = end < rest.size();
  rest.remove_prefix(more ? end + 1 : end);
  return more;
}

}  // namespace

void FailAt(const Place& place, std::string_view why) {
  throw std::invalid_argument(fmt::format("{}: {}", place.Text(), why));
}

std::vector<CsvRow> ReadCsv(const std::string& file) {
  const std::string text = ReadText(file);
  std::vector<CsvRow> rows;
  Place place{file, 0};
  for (std::string_view line : Lines(text)) {
    ++place.line;
    line = Trimmed(line);
    if (line.empty() || line.front() == '#') continue;
    CsvRow row{place, {}};
    bool more = true;
    while (more) more = TakeCell(line, place, row.cells.emplace_back());
    rows.push_back(std::move(row));
  }
  return rows;
}

double CsvNumber(const std::string& cell, const Place& place, std::string_view what, double max) {
  double x = 0;
  const char* const end = cell.data() + cell.size();
  const auto [rest, error] = std::from_chars(cell.data(), end, x);
  if (error != std::errc{} || rest != end || !(x >= 0) || x > max) {
    FailAt(place, fmt::format("{} {} is not a number from 0 to {}", what, Quoted(cell), max));
  }
  return x;
}

}  // namespace spes::scenarios
