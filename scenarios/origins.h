// Where each key of a scenario was written, for messages about it.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

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

  // Runs f; the std::invalid_argument that it throws is said of `path`, without the words `drop` in
  // front.
  template <class F>
  void Blame(const std::string& path, std::string_view drop, F f) const {
    try {
      f();
    } catch (const std::invalid_argument& e) {
      std::string_view why = e.what();
      if (why.starts_with(drop)) why.remove_prefix(drop.size());
      Fail(path, std::string(why));
    }
  }

 private:
  std::map<std::string, std::string> where_;
};

// "path.key", or "key" for an empty path.
std::string Join(const std::string& path, std::string_view key);

}  // namespace spes::scenarios
