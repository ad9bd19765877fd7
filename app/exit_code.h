// How the program ends.
#pragma once

#include <exception>
#include <stdexcept>

namespace spes::app {

inline constexpr int kUsersMistake = 2, kFailure = 3;

inline int ExitCodeOf(const std::exception& error) {
  const bool mistake = dynamic_cast<const std::invalid_argument*>(&error) != nullptr;
  return mistake ? kUsersMistake : kFailure;
}

}  // namespace spes::app
