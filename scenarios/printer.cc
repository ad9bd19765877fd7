#include "scenarios/printer.h"

#include <charconv>
#include <sstream>
#include <utility>

#include "scenarios/describe.h"
#include "scenarios/value_text.h"
#include "scenarios/yaml_tree.h"

namespace spes::scenarios {

namespace {

class Printer : public Visitor {
 public:
  Printer() { tree_.kind = Tree::Kind::kMap; }

  Tree Take() { return std::move(tree_); }

  void OnValue(const Field& field, const Value& value) override {
    Tree printed;
    if (auto* const* texts = std::get_if<std::vector<std::string>*>(&value)) {
      printed.kind = Tree::Kind::kList;
      for (const std::string& text : **texts) printed.items.push_back(Tree::Scalar(text));
    } else {
      printed = Tree::Scalar(ToText(field, value));
    }
    tree_.Add(std::string(field.key), {}, std::move(printed));
  }

  void OnSection(const Field& field, const Section& section) override {
    Printer inner;
    if (!section.idle || !section.idle()) section.visit(inner);
    tree_.Add(std::string(field.key), {}, inner.Take());
  }

  void OnList(const Field& field, const List& list) override {
    Tree items;
    items.kind = Tree::Kind::kList;
    for (std::size_t i = 0; i < list.size(); ++i) {
      Printer inner;
      list.visit(i, inner);
      items.items.push_back(inner.Take());
    }
    tree_.Add(std::string(field.key), {}, std::move(items));
  }

 private:
  Tree tree_;
};

Tree TreeOf(const Scenario& scenario) {
  Scenario copy = scenario;  // a description points into what it describes
  for (trainer::DomainConfig& domain : copy.data.domains) {
    if (!domain.corpus.empty()) domain.files.clear();  // the catalogue says them again
  }
  Printer printer;
  Describe(copy, printer);
  return printer.Take();
}

// A map's value, or a list's item by its index; null where there is none.
const Tree* Below(const Tree& tree, const std::string& part) {
  if (tree.kind != Tree::Kind::kList) return tree.Find(part);
  std::size_t index = 0;
  const char* const end = part.data() + part.size();
  const auto [rest, error] = std::from_chars(part.data(), end, index);
  const bool there = error == std::errc{} && rest == end && index < tree.items.size();
  return there ? &tree.items[index] : nullptr;
}

}  // namespace

std::string PrintScenario(const Scenario& scenario) { return WriteYaml(TreeOf(scenario)); }

std::string PrintValue(const Scenario& scenario, const std::string& key) {
  const Tree whole = TreeOf(scenario);
  const Tree* tree = &whole;
  std::istringstream parts(key);
  for (std::string part; tree != nullptr && std::getline(parts, part, '.');) {
    tree = Below(*tree, part);
  }
  if (tree == nullptr) return "";
  if (tree->kind == Tree::Kind::kScalar) return tree->text;
  std::string text;
  for (const Tree& item : tree->items) {
    if (tree->kind != Tree::Kind::kList || item.kind != Tree::Kind::kScalar) return "";
    text += (text.empty() ? "" : ", ") + item.text;
  }
  return text;
}

}  // namespace spes::scenarios
