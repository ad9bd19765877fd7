// Where each key of a scenario was written, for messages about it.
#pragma once

#include <map>
#include <string>

namespace spes::scenarios {

// Keys are dotted paths with indices: "nodes.groups.0.speed"; "" is the whole scenario.
class Origins {
 public:
  void Set(const std::string& path, std::string where) { where_[path] = std::move(where); }

  // Forgets a path and all below it.
  void Erase(const std::string& path);

  // "file:line" of the path, or of the nearest part of the scenario around it that was written;
  // empty when nothing is known.
  std::string Where(const std::string& path) const;

  // Throws std::invalid_argument with "where: path: why"; parts that are empty are left out.
  [[noreturn]] void Fail(const std::string& path, const std::string& why) const;

 private:
  std::map<std::string, std::string> where_;
};

// "path.key", or "key" for an empty path.
std::string Join(const std::string& path, std::string_view key);

}  // namespace spes::scenarios
