#include "scenarios/nearest.h"

#include <fmt/format.h>

#include <algorithm>

namespace spes::scenarios {

int EditDistance(std::string_view a, std::string_view b) {
  // Rows i − 2, i − 1 and i of the table of distances between prefixes (Damerau 1964, without
  // edits of a swapped pair).
  std::vector<int> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, last);
    std::swap(last, row);
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::string Suggestion(std::string_view name, const std::vector<std::string>& known) {
  constexpr std::size_t kFew = 13;
  if (name.size() <= 64) {  // longer ones resemble nothing
    int best = 1 + std::max(1, static_cast<int>(name.size()) / 3);
    const std::string* nearest = nullptr;
    for (const std::string& k : known) {
      const int distance = EditDistance(name, k);
      if (distance < best) {
        best = distance;
        nearest = &k;
      }
    }
    // A beginning: "step" for "step_time".
    for (const std::string& k : known) {
      if (nearest == nullptr && name.size() > 1 && k.starts_with(name)) nearest = &k;
    }
    if (nearest != nullptr) return fmt::format("; did you mean '{}'?", *nearest);
  }
  if (known.empty() || known.size() > kFew) return "";
  std::string all;
  for (std::size_t i = 0; i < known.size(); ++i) {
    all += (i == 0 ? "" : i + 1 == known.size() ? " and " : ", ") + known[i];
  }
  return "; there is " + all;
}

}  // namespace spes::scenarios
