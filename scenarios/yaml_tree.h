// YAML as a tree that knows where each of its parts is written. The only user of yaml-cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace spes::scenarios {

// A file and a line from 1, or something else that says where (an argument) and line 0.
struct Place {
  std::string source;
  int line = 0;

  std::string Text() const;  // "file:line", or the source alone
};

struct Tree {
  enum class Kind { kNull, kScalar, kList, kMap };
  struct Key {
    std::string name;
    Place place;
  };

  Kind kind = Kind::kNull;
  Place place;
  std::string text;         // of a scalar
  std::vector<Key> keys;    // of a map, one per item, unique
  std::vector<Tree> items;  // of a list or a map

  static Tree Scalar(std::string text, Place place = {});
  // The value of a key; null when the map has no such key.
  const Tree* Find(std::string_view key) const;
  Tree& Add(std::string key, Place place, Tree value);
};

// One document. Throws std::invalid_argument with one line "source:line: …": not YAML, a key twice,
// a key that is no plain text, more than one document, unreasonably deep or large. Aliases are
// replaced by what they stand for. Without lines, every place is `source` alone.
Tree ParseYaml(const std::string& text, const std::string& source, bool lines = true);

// The same of a file. Throws std::invalid_argument also when it cannot be read or holds nothing.
Tree ReadYaml(const std::string& path);

// Text that ParseYaml reads back to the same tree (places aside). Lists and maps that fit in a line
// are written in one line.
std::string WriteYaml(const Tree& tree);

// A text for a message: control characters become blanks, and what is beyond `most` bytes is "…".
std::string OneLine(std::string_view text, std::size_t most = 100);
// 'text' in quotes, at most about 60 bytes.
std::string Quoted(std::string_view text);

}  // namespace spes::scenarios
