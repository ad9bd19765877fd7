#include "tests/architecture/source_tree.h"

#include <fstream>
#include <regex>
#include <stdexcept>

namespace spes::architecture {

SourceFile ReadSource(std::istream& text) {
  static const std::regex include(R"re(^\s*#\s*include\s*([<"])([^>"]+)[>"].*)re");
  SourceFile file;
  std::string line;
  std::smatch match;
  while (std::getline(text, line)) {
    ++file.lines;
    if (line.find("include") != std::string::npos && std::regex_match(line, match, include)) {
      file.includes.push_back({.name = match[2], .quoted = match[1] == "\"", .line = file.lines});
    }
  }
  return file;
}

SourceTree ReadTree(const std::filesystem::path& root, const std::vector<std::string>& folders) {
  SourceTree tree;
  for (const std::string& folder : folders) {
    if (!std::filesystem::is_directory(root / folder)) {
      throw std::runtime_error("no folder " + (root / folder).string());
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension().string();
      if (!entry.is_regular_file() || (extension != ".h" && extension != ".cc")) continue;
      std::ifstream text(entry.path());
      tree[entry.path().lexically_relative(root).generic_string()] = ReadSource(text);
    }
  }
  return tree;
}

}  // namespace spes::architecture
