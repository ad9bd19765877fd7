// Tables of comma-separated values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/yaml_tree.h"

namespace spes::scenarios {

struct CsvRow {
  Place place;  // its line
  std::vector<std::string> cells;
};

// All rows, the header included. Cells may stand in double quotes, "" inside of them is one; blanks
// around cells are left out. Empty lines and lines that begin with # are skipped; CRLF and a
// byte-order mark are no matter. Throws std::invalid_argument with one line "file:line: …":
// unreadable, a quote that is not closed within its line or is followed by text.
std::vector<CsvRow> ReadCsv(const std::string& file);

// The number of a cell, `what` in messages. Throws std::invalid_argument "file:line: …" unless it
// is a plain number from 0 to `max`.
double CsvNumber(const std::string& cell, const Place& place, std::string_view what, double max);

// Throws std::invalid_argument "file:line: why".
[[noreturn]] void FailAt(const Place& place, std::string_view why);

}  // namespace spes::scenarios
