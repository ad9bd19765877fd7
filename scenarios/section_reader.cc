#include "scenarios/section_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <stdexcept>
#include <utility>

#include "scenarios/folders.h"
#include "scenarios/nearest.h"
#include "scenarios/value_text.h"

namespace spes::scenarios {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kBase = "base";
constexpr int kMaxDepth = 16;  // of files that name files
constexpr std::size_t kMaxItems = 100'000;

std::string_view KindName(Tree::Kind kind) {
  switch (kind) {
    case Tree::Kind::kNull:
      return "nothing";
    case Tree::Kind::kScalar:
      return "a single value";
    case Tree::Kind::kList:
      return "a list";
    case Tree::Kind::kMap:
      return "a mapping";
  }
  return "";
}

[[noreturn]] void Fail(const Place& place, const std::string& path, const std::string& why) {
  throw std::invalid_argument(
      fmt::format("{}: {}{}{}", place.Text(), path, path.empty() ? "" : ": ", why));
}

std::vector<fs::path> Folders(const Source& source) {
  return {source.folder, source.then, InstalledScenarios()};
}

// The file that a field names, absolute.
std::string InputFile(const std::string& name, const Place& place, const std::string& path,
                      const Source& source) {
  if (name.empty()) return name;
  const std::optional<std::string> file = FindFile(name, Folders(source));
  if (!file) Fail(place, path, fmt::format("there is no file {}", Quoted(name)));
  return *file;
}

bool NamesYaml(const Tree& tree) {
  return tree.kind == Tree::Kind::kScalar &&
         (tree.text.ends_with(".yaml") || tree.text.ends_with(".yml"));
}

// Index of a list item that an override names.
std::size_t ItemIndex(const Tree::Key& key, const std::string& path, std::size_t size) {
  std::size_t index = 0;
  const char* const end = key.name.data() + key.name.size();
  const auto [rest, error] = std::from_chars(key.name.data(), end, index);
  if (error != std::errc{} || rest != end) {
    Fail(key.place, path, fmt::format("is a list; {} is no index", Quoted(key.name)));
  }
  if (index >= size) {
    Fail(key.place, path,
         size == 0 ? "the list is empty"
                   : fmt::format("there is no item {}; the last is {}", index, size - 1));
  }
  return index;
}

class Reader : public Visitor {
 public:
  Reader(const Tree& map, const std::string& path, const Source& source, Origins& origins)
      : map_(map), path_(path), source_(source), origins_(origins) {}

  void OnValue(const Field& field, const Value& value) override {
    const Tree* tree = Look(field);
    if (tree == nullptr) return;
    const std::string path = Join(path_, field.key);
    if (auto* const* list = std::get_if<std::vector<std::string>*>(&value)) {
      ReadTexts(*tree, path, field, **list);
      return;
    }
    CheckScalar(*tree, path, field, value);
    try {
      SetFromText(field, value, tree->text);
    } catch (const std::invalid_argument& e) {
      Fail(tree->place, path, e.what());
    }
    if (field.unit == Unit::kInputFile) {
      std::string& file = *std::get<std::string*>(value);
      file = InputFile(file, tree->place, path, source_);
    }
  }

  void OnSection(const Field& field, const Section& section) override {
    const Tree* tree = Look(field);
    if (tree == nullptr) return;
    ReadSection(*tree, Join(path_, field.key), "", section, source_, origins_);
  }

  void OnList(const Field& field, const List& list) override {
    const Tree* tree = Look(field);
    if (tree == nullptr || tree->kind == Tree::Kind::kNull) return;
    const std::string path = Join(path_, field.key);
    const auto read_item = [&](std::size_t i, const Tree& item, const Place& place) {
      const std::string item_path = Join(path, std::to_string(i));
      origins_.Set(item_path, place.Text());
      Tree wrapped;
      const bool shorthand =
          !list.shorthand.empty() && item.kind == Tree::Kind::kScalar && !NamesYaml(item);
      if (shorthand) {
        wrapped.place = item.place;
        wrapped.Add(std::string(list.shorthand), item.place, item);
        list.reset(i);
      }
      if (item.kind == Tree::Kind::kNull) Fail(item.place, item_path, "has no value");
      ReadSection(shorthand ? wrapped : item, item_path, "",
                  {[&](Visitor& v) { list.visit(i, v); }, [&] { list.reset(i); }}, source_,
                  origins_);
    };
    if (tree->kind == Tree::Kind::kMap && source_.override) {
      for (std::size_t k = 0; k < tree->keys.size(); ++k) {
        read_item(ItemIndex(tree->keys[k], path, list.size()), tree->items[k], tree->keys[k].place);
      }
      return;
    }
    CheckList(*tree, path);
    origins_.Erase(path);
    origins_.Set(path, tree->place.Text());
    list.resize(0);
    list.resize(tree->items.size());
    for (std::size_t i = 0; i < tree->items.size(); ++i) {
      read_item(i, tree->items[i], tree->items[i].place);
    }
  }

  void OnTree(const Field& field, Tree& value) override {
    if (const Tree* tree = Look(field)) value = *tree;
  }

  // After the visit: every key must have been asked for.
  void CheckKeys(const std::string& label) const {
    for (const Tree::Key& key : map_.keys) {
      if ((source_.bases && key.name == kBase) ||
          std::find(known_.begin(), known_.end(), key.name) != known_.end()) {
        continue;
      }
      Fail(key.place, "",
           fmt::format("unknown key {} in '{}'{}", Quoted(key.name), path_.empty() ? label : path_,
                       Suggestion(key.name, known_)));
    }
  }

 private:
  const Tree* Look(const Field& field) {
    known_.emplace_back(field.key);
    const Tree* tree = map_.Find(field.key);
    // The line of the key, not of what may begin in a later line.
    for (const Tree::Key& key : map_.keys) {
      if (key.name == field.key) origins_.Set(Join(path_, field.key), key.place.Text());
    }
    return tree;
  }

  static void CheckScalar(const Tree& tree, const std::string& path, const Field& field,
                          const Value& value) {
    if (tree.kind == Tree::Kind::kScalar) return;
    const std::string expected = Expected(field, value);
    if (tree.kind == Tree::Kind::kNull) {
      Fail(tree.place, path, fmt::format("has no value; it must be {}", expected));
    }
    Fail(tree.place, path, fmt::format("must be {}, not {}", expected, KindName(tree.kind)));
  }

  static void CheckList(const Tree& tree, const std::string& path) {
    if (tree.kind != Tree::Kind::kList) {
      Fail(tree.place, path, fmt::format("must be a list, not {}", KindName(tree.kind)));
    }
    if (tree.items.size() > kMaxItems) {
      Fail(tree.place, path, fmt::format("at most {} items are allowed", kMaxItems));
    }
  }

  // A list of texts; a single one may stand for itself.
  void ReadTexts(const Tree& tree, const std::string& path, const Field& field,
                 std::vector<std::string>& texts) {
    const auto read = [&](const Tree& item, const std::string& item_path) {
      if (item.kind != Tree::Kind::kScalar) {
        Fail(item.place, item_path, fmt::format("must be a text, not {}", KindName(item.kind)));
      }
      return field.unit == Unit::kInputFile ? InputFile(item.text, item.place, item_path, source_)
                                            : item.text;
    };
    if (tree.kind == Tree::Kind::kMap && source_.override) {
      for (std::size_t k = 0; k < tree.keys.size(); ++k) {
        texts[ItemIndex(tree.keys[k], path, texts.size())] =
            read(tree.items[k], Join(path, tree.keys[k].name));
      }
      return;
    }
    std::vector<std::string> fresh;
    if (tree.kind == Tree::Kind::kScalar) {
      fresh.push_back(read(tree, path));
    } else {
      CheckList(tree, path);
      for (std::size_t i = 0; i < tree.items.size(); ++i) {
        fresh.push_back(read(tree.items[i], Join(path, std::to_string(i))));
      }
    }
    texts = std::move(fresh);
  }

  const Tree& map_;
  const std::string& path_;
  const Source& source_;
  Origins& origins_;
  std::vector<std::string> known_;
};

}  // namespace

void ReadSection(const Tree& tree, const std::string& path, const std::string& label,
                 const Section& section, const Source& source, Origins& origins) {
  const std::string& name = path.empty() ? label : path;
  const auto read_file = [&](const Tree& named) {
    if (!NamesYaml(named)) {
      Fail(named.place, name, "must be the name of a .yaml file, or a mapping of its keys");
    }
    if (source.depth >= kMaxDepth) {
      Fail(named.place, name, "files that name each other are nested too deeply");
    }
    const std::string file = InputFile(named.text, named.place, name, source);
    section.reset();
    origins.Erase(path);
    origins.Set(path, named.place.Text());
    ReadSection(
        ReadYaml(file), path, label, section,
        {.folder = fs::path(file).parent_path(), .depth = source.depth + 1, .bases = source.bases},
        origins);
  };
  switch (tree.kind) {
    case Tree::Kind::kNull:
      return;  // all its keys may be commented out
    case Tree::Kind::kScalar:
      read_file(tree);
      return;
    case Tree::Kind::kList:
      Fail(tree.place, name, "must be a mapping, not a list");
    case Tree::Kind::kMap:
      break;
  }
  const Tree* const base = source.bases ? tree.Find(kBase) : nullptr;
  if (base != nullptr) read_file(*base);
  Reader reader(tree, path, source, origins);
  section.visit(reader);
  reader.CheckKeys(label);
}

}  // namespace spes::scenarios
