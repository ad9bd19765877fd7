// Reads described fields from a YAML tree.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "scenarios/describe.h"
#include "scenarios/origins.h"
#include "scenarios/yaml_tree.h"

namespace spes::scenarios {

// What a tree was read from.
struct Source {
  std::filesystem::path folder;      // file names are relative to it
  std::filesystem::path then = ".";  // or else to this
  bool override = false;             // changes what is there: may name list items by index
  int depth = 0;                     // of files named by files
  bool bases = true;  // a key `base` names the file with the keys that are not given beside it
};

// Sets the fields that the tree names, and records in `origins` where they stand. `path` is the
// section's dotted path and `label` what messages call it where that is empty. Keys are checked: an
// unknown one is an error that names the nearest. Throws std::invalid_argument with one line.
void ReadSection(const Tree& tree, const std::string& path, const std::string& label,
                 const Section& section, const Source& source, Origins& origins);

}  // namespace spes::scenarios
