#include "scenarios/reader.h"

#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "scenarios/describe.h"
#include "scenarios/folders.h"
#include "scenarios/resolve.h"
#include "scenarios/section_reader.h"
#include "scenarios/validate.h"
#include "scenarios/yaml_tree.h"

namespace spes::scenarios {

namespace fs = std::filesystem;

namespace {

// A tree of one branch: "a.b=c" is {a: {b: c}}.
Tree OverrideTree(const std::string& override) {
  const std::string where = "--set " + OneLine(override);
  const std::size_t equals = override.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw std::invalid_argument(
        fmt::format("{}: must be key=value, for example sync.every=50", where));
  }
  Tree tree = ParseYaml(override.substr(equals + 1), where, false);
  tree.place = {where, 0};
  std::string path = override.substr(0, equals);
  while (true) {
    const std::size_t dot = path.rfind('.');
    std::string key = path.substr(dot == std::string::npos ? 0 : dot + 1);
    if (key.empty()) {
      throw std::invalid_argument(fmt::format("{}: a part of the key is empty", where));
    }
    Tree outer;
    outer.place = {where, 0};
    outer.Add(std::move(key), {where, 0}, std::move(tree));
    tree = std::move(outer);
    if (dot == std::string::npos) return tree;
    path.resize(dot);
  }
}

Scenario Build(const Tree& tree, const std::string& source,
               const std::vector<std::string>& overrides) {
  Scenario scenario;
  Origins origins;
  origins.Set("", source);
  const Section whole = {[&](Visitor& v) { Describe(scenario, v); },
                         [&] { scenario = Scenario{}; }};
  const fs::path folder = fs::path(source).parent_path();
  if (tree.kind == Tree::Kind::kScalar) {
    throw std::invalid_argument(
        fmt::format("{}: a scenario is a mapping of keys to values", tree.place.Text()));
  }
  ReadSection(tree, "", "scenario", whole, {folder, false, 0}, origins);
  // A base may have brought another file's place, and its name.
  origins.Set("", source);
  if (scenario.name.empty() || tree.Find("name") == nullptr) {
    scenario.name = fs::path(source).stem().string();
  }
  for (const std::string& override : overrides) {
    ReadSection(OverrideTree(override), "", "scenario", whole, {folder, true, 0}, origins);
  }
  Resolve(scenario, origins);
  Validate(scenario, origins);
  return scenario;
}

}  // namespace

Scenario ReadScenario(const std::string& path, const std::vector<std::string>& overrides) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    if (const auto installed = FindFile(path, {InstalledScenarios()})) {
      return Build(ReadYaml(*installed), *installed, overrides);
    }
  }
  return Build(ReadYaml(path), path, overrides);
}

Scenario ParseScenario(const std::string& text, const std::string& source,
                       const std::vector<std::string>& overrides) {
  const Tree tree = ParseYaml(text, source);
  if (tree.kind == Tree::Kind::kNull) {
    throw std::invalid_argument(fmt::format("{}: the file is empty", source));
  }
  return Build(tree, source, overrides);
}

trainer::ModelConfig ReadModel(const std::string& path) {
  trainer::ModelConfig model;
  Origins origins;
  origins.Set("", path);
  ReadSection(ReadYaml(path), "", "model",
              {[&](Visitor& v) { Describe(model, v); }, [&] { model = {}; }},
              {fs::path(path).parent_path(), false, 0}, origins);
  ValidateModel(model, "", origins);
  return model;
}

}  // namespace spes::scenarios
