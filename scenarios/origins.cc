#include "scenarios/origins.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string_view>

namespace spes::scenarios {

void Origins::Erase(const std::string& path) {
  where_.erase(path);
  const std::string below = Join(path, "");
  auto it = where_.lower_bound(below);
  while (it != where_.end() && it->first.starts_with(below)) it = where_.erase(it);
}

std::string Origins::Where(const std::string& path) const {
  for (std::string part = path;;) {
    const auto found = where_.find(part);
    if (found != where_.end()) return found->second;
    if (part.empty()) return "";
    const std::size_t dot = part.rfind('.');
    part.resize(dot == std::string::npos ? 0 : dot);
  }
}

void Origins::Fail(const std::string& path, const std::string& why) const {
  std::string message = Where(path);
  if (!message.empty()) message += ": ";
  if (!path.empty()) message += path + ": ";
  throw std::invalid_argument(message + why);
}

std::string Join(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

}  // namespace spes::scenarios
