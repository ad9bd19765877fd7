// Where two scenarios differ.
#pragma once

#include <string>

namespace spes::scenarios {

// Of the texts of two ScenarioIdentity, the first key that does not have the same value, as
// "sync.every is 25 here and 50 there"; with names for the two sides. Empty where there is none.
// Works on any text.
std::string FirstDifference(const std::string& ours, const std::string& theirs,
                            const std::string& our_name, const std::string& their_name);

}  // namespace spes::scenarios
