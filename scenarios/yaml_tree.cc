#include "scenarios/yaml_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "scenarios/text_file.h"

namespace spes::scenarios {

namespace {

constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxNodes = 1'000'000;  // aliases of aliases could grow without bound
constexpr std::size_t kLineWidth = 160;       // a path or a node group in a line

[[noreturn]] void Fail(const Place& place, const std::string& why) {
  throw std::invalid_argument(fmt::format("{}: {}", place.Text(), why));
}

std::size_t CountNodes(const Tree& tree) {
  std::size_t count = 1;
  for (const Tree& item : tree.items) count += CountNodes(item);
  return count;
}

// Builds a tree from the parser's events.
class Builder : public YAML::EventHandler {
 public:
  Builder(const std::string& source, bool lines) : source_(source), lines_(lines) {}

  Tree& root() { return root_; }
  Place At(const YAML::Mark& mark) const { return {source_, lines_ ? mark.line + 1 : 0}; }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Take({.kind = Tree::Kind::kNull, .place = At(mark), .text = {}, .keys = {}, .items = {}},
         anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                const std::string& value) override {
    Take(Tree::Scalar(value, At(mark)), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) Fail(At(mark), "an alias inside of what it stands for");
    nodes_ += CountNodes(found->second);
    if (nodes_ > kMaxNodes) Fail(At(mark), "aliases make this file too large");
    Tree copy = found->second;
    copy.place = At(mark);
    Take(std::move(copy), YAML::NullAnchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(Tree::Kind::kList, mark, anchor);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(Tree::Kind::kMap, mark, anchor);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Level {
    Tree tree;
    YAML::anchor_t anchor;
    bool has_key = false;  // of a map: its last key waits for a value
  };

  void Open(Tree::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (levels_.size() >= kMaxDepth) Fail(At(mark), "nested too deeply");
    Level& level = levels_.emplace_back();
    level.tree.kind = kind;
    level.tree.place = At(mark);
    level.anchor = anchor;
  }

  void Close() {
    Level level = std::move(levels_.back());
    levels_.pop_back();
    Take(std::move(level.tree), level.anchor);
  }

  void Take(Tree tree, YAML::anchor_t anchor) {
    if (++nodes_ > kMaxNodes) Fail(tree.place, "this file is too large");
    if (anchor != YAML::NullAnchor) anchors_[anchor] = tree;
    if (levels_.empty()) {
      root_ = std::move(tree);
      return;
    }
    Level& level = levels_.back();
    if (level.tree.kind == Tree::Kind::kMap && !level.has_key) {
      if (tree.kind != Tree::Kind::kScalar) Fail(tree.place, "a key must be a word");
      if (level.tree.Find(tree.text) != nullptr) {
        const auto first = std::find_if(level.tree.keys.begin(), level.tree.keys.end(),
                                        [&](const Tree::Key& k) { return k.name == tree.text; });
        Fail(
            tree.place,
            fmt::format("the key {} is here twice{}", Quoted(tree.text),
                        lines_ ? fmt::format("; the first is in line {}", first->place.line) : ""));
      }
      level.tree.keys.push_back({tree.text, tree.place});
      level.has_key = true;
      return;
    }
    // A missing value has the place of what comes next.
    if (level.has_key && tree.kind == Tree::Kind::kNull) tree.place = level.tree.keys.back().place;
    level.tree.items.push_back(std::move(tree));
    level.has_key = false;
  }

  const std::string& source_;
  const bool lines_;
  Tree root_;
  std::vector<Level> levels_;
  std::map<YAML::anchor_t, Tree> anchors_;
  std::size_t nodes_ = 0;
};

// Words that some YAML reader takes for something else than text.
bool IsPlain(const std::string& text) {
  const auto word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '/' || c == '+' || c == '-' || c == ' ';
  };
  if (text.empty() || text.front() == ' ' || text.back() == ' ' || text.front() == '-') {
    // A negative number is fine, "- x" would be a list.
    if (text.size() < 2 || text.front() != '-' || text[1] < '0' || text[1] > '9') return false;
  }
  if (!std::all_of(text.begin(), text.end(), word)) return false;
  for (const char* other : {"null", "Null", "NULL", "yes", "Yes", "no", "No", "on", "On", "off",
                            "Off", "y", "n", "Y", "N", "...", "---"}) {
    if (text == other) return false;
  }
  return true;
}

std::string ScalarText(const std::string& text) {
  if (IsPlain(text)) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string InOneLine(const Tree& tree) {
  switch (tree.kind) {
    case Tree::Kind::kNull:
      return "~";
    case Tree::Kind::kScalar:
      return ScalarText(tree.text);
    case Tree::Kind::kList:
    case Tree::Kind::kMap:
      break;
  }
  const bool map = tree.kind == Tree::Kind::kMap;
  std::string text;
  for (std::size_t i = 0; i < tree.items.size(); ++i) {
    if (i > 0) text += ", ";
    if (map) text += fmt::format("{}: ", ScalarText(tree.keys[i].name));
    text += InOneLine(tree.items[i]);
  }
  return map ? fmt::format("{{{}}}", text) : fmt::format("[{}]", text);
}

// `used`: characters of the line before the value.
bool FitsInLine(const Tree& tree, std::size_t used) {
  return tree.items.empty() || used + InOneLine(tree).size() <= kLineWidth;
}

void WriteBlock(const Tree& tree, std::size_t indent, bool indent_first, std::string& out) {
  const bool map = tree.kind == Tree::Kind::kMap;
  for (std::size_t i = 0; i < tree.items.size(); ++i) {
    if (i > 0 || indent_first) out.append(indent, ' ');
    const std::string head = map ? ScalarText(tree.keys[i].name) + ":" : "-";
    out += head;
    const Tree& item = tree.items[i];
    const bool section = indent == 0 && item.kind == Tree::Kind::kMap && !item.items.empty();
    if (!section && FitsInLine(item, indent + head.size() + 1)) {
      out += fmt::format(" {}\n", InOneLine(item));
    } else if (map) {
      out += "\n";
      WriteBlock(item, indent + 2, true, out);
    } else {
      out += " ";
      WriteBlock(item, indent + 2, false, out);
    }
  }
}

}  // namespace

std::string Place::Text() const { return line > 0 ? fmt::format("{}:{}", source, line) : source; }

Tree Tree::Scalar(std::string text, Place place) {
  Tree tree;
  tree.kind = Kind::kScalar;
  tree.text = std::move(text);
  tree.place = std::move(place);
  return tree;
}

const Tree* Tree::Find(std::string_view key) const {
  for (std::size_t i = 0; i < keys.size() && i < items.size(); ++i) {
    if (keys[i].name == key) return &items[i];
  }
  return nullptr;
}

Tree& Tree::Add(std::string key, Place place, Tree value) {
  kind = Kind::kMap;
  keys.push_back({std::move(key), std::move(place)});
  return items.emplace_back(std::move(value));
}

Tree ParseYaml(const std::string& text, const std::string& source, bool lines) {
  // yaml-cpp takes the end of the file for a closing quote, unless it comes within a line.
  std::istringstream in(text.substr(0, text.find_last_not_of(" \t\r\n") + 1));
  Builder builder(source, lines);
  try {
    YAML::Parser parser(in);
    parser.HandleNextDocument(builder);
    Builder rest(source, lines);
    if (parser.HandleNextDocument(rest)) {
      Fail(rest.root().place, "a second YAML document begins here; one file holds one");
    }
  } catch (const YAML::Exception& e) {
    Fail(e.mark.is_null() ? Place{source, 0} : builder.At(e.mark),
         fmt::format("this is not YAML: {}", OneLine(e.msg)));
  }
  return std::move(builder.root());
}

Tree ReadYaml(const std::string& path) {
  Tree tree = ParseYaml(ReadText(path), path);
  if (tree.kind == Tree::Kind::kNull) {
    throw std::invalid_argument(fmt::format("{}: the file is empty", path));
  }
  return tree;
}

std::string WriteYaml(const Tree& tree) {
  std::string out;
  if (tree.items.empty()) return fmt::format("{}\n", InOneLine(tree));
  WriteBlock(tree, 0, true, out);
  return out;
}

std::string OneLine(std::string_view text, std::size_t most) {
  std::size_t size = std::min(text.size(), most);
  // Not in the middle of a UTF-8 character.
  while (size < text.size() && size > 0 &&
         (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) {
    --size;
  }
  std::string line;
  for (const char c : text.substr(0, size)) {
    line += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  }
  return size < text.size() ? line + "…" : line;
}

std::string Quoted(std::string_view text) { return fmt::format("'{}'", OneLine(text, 60)); }

}  // namespace spes::scenarios
