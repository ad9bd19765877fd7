#include "scenarios/scenario_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <utility>
#include <vector>

#include "scenarios/origins.h"
#include "scenarios/yaml_tree.h"

namespace spes::scenarios {

namespace {

using Entry = std::pair<std::string, std::string>;  // dotted path, value

void Collect(const Tree& tree, const std::string& path, std::vector<Entry>& entries) {
  if (tree.items.empty()) {
    entries.emplace_back(path, tree.kind == Tree::Kind::kScalar ? Quoted(tree.text) : "empty");
  }
  for (std::size_t i = 0; i < tree.items.size(); ++i) {
    const std::string key =
        tree.kind == Tree::Kind::kMap ? OneLine(tree.keys[i].name) : std::to_string(i);
    Collect(tree.items[i], Join(path, key), entries);
  }
}

std::vector<Entry> Entries(const std::string& text, const std::string& name) {
  std::vector<Entry> entries;
  if (!text.empty()) Collect(ParseYaml(text, "the scenario " + name), "", entries);
  return entries;
}

}  // namespace

std::string FirstDifference(const std::string& ours, const std::string& theirs,
                            const std::string& our_name, const std::string& their_name) {
  const std::vector<Entry> a = Entries(ours, our_name), b = Entries(theirs, their_name);
  const auto value = [](const std::vector<Entry>& entries, const std::string& path) {
    const auto found = std::find_if(entries.begin(), entries.end(),
                                    [&path](const Entry& entry) { return entry.first == path; });
    return found == entries.end() ? std::string("not there") : found->second;
  };
  for (const auto* entries : {&a, &b}) {
    for (const auto& [path, unused] : *entries) {
      const std::string here = value(a, path), there = value(b, path);
      if (here != there) {
        return fmt::format("{} is {} {} and {} {}", path, here, our_name, there, their_name);
      }
    }
  }
  return {};
}

}  // namespace spes::scenarios
