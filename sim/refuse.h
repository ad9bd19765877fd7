// How bad input is refused.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace spes::sim {

// Throws std::invalid_argument with the formatted line.
template <typename... Args>
[[noreturn]] void Refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw std::invalid_argument(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace spes::sim
