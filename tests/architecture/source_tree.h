// The C++ files of the repository, as far as the rules of architecture look at them.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace spes::architecture {

struct Include {
  std::string name;  // what stands between the quotes or brackets
  bool quoted = false;
  int line = 0;
};

struct SourceFile {
  std::vector<Include> includes;
  int lines = 0;
};

// By path from the root, with '/'.
using SourceTree = std::map<std::string, SourceFile>;

SourceFile ReadSource(std::istream& text);

// Every .h and .cc below these folders of `root`; a folder that is missing is an error
// (std::runtime_error).
SourceTree ReadTree(const std::filesystem::path& root, const std::vector<std::string>& folders);

}  // namespace spes::architecture
