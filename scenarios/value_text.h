// A field's value as text, in both directions.
#pragma once

#include <string>
#include <string_view>

#include "scenarios/describe.h"

namespace spes::scenarios {

// The text of a duration or rate that is not set.
inline constexpr const char* kUnset = "none";

// Sets the value. Throws std::invalid_argument with one line, without place or path, when the text
// has the wrong type, no unit where one belongs, or is outside the field's limits. Lists of texts
// are the caller's; so are files.
void SetFromText(const Field& field, const Value& value, const std::string& text);

// Text that SetFromText reads back to exactly this value.
std::string ToText(const Field& field, const Value& value);

// A unit that the text of such a value may have, "Mbps" for a rate; empty where none belongs.
std::string_view ExampleUnit(const Field& field, const Value& value);

// What would be right: "a whole number of at least 1", "a duration such as '40 ms'".
std::string Expected(const Field& field, const Value& value);

}  // namespace spes::scenarios
