#include "scenarios/printer.h"

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

}  // namespace

std::string PrintScenario(const Scenario& scenario) {
  Scenario copy = scenario;  // a description points into what it describes
  for (trainer::DomainConfig& domain : copy.data.domains) {
    if (!domain.corpus.empty()) domain.files.clear();  // the catalogue says them again
  }
  Printer printer;
  Describe(copy, printer);
  return WriteYaml(printer.Take());
}

}  // namespace spes::scenarios
