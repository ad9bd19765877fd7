// Suggestions for misspelt names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace spes::scenarios {

// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
int EditDistance(std::string_view a, std::string_view b);

// "; did you mean 'sync'?" for the nearest of the names when it is near or begins alike, otherwise
// "; there is a, b and c" when there are few, otherwise nothing.
std::string Suggestion(std::string_view name, const std::vector<std::string>& known);

}  // namespace spes::scenarios
