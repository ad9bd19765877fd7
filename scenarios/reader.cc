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

// "a.b=c", where it is written and what it sets.
Setting ParseSetting(const std::string& override) {
  const std::string where = "--set " + OneLine(override);
  const std::size_t equals = override.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw std::invalid_argument(
        fmt::format("{}: must be key=value, for example sync.every=50", where));
  }
  Tree value = ParseYaml(override.substr(equals + 1), where, false);
  value.place = {where, 0};
  return {override.substr(0, equals), std::move(value), {where, 0}};
}

// A tree of one branch: a.b of c is {a: {b: c}}.
Tree BranchOf(const Setting& setting) {
  Tree tree = setting.value;
  std::string path = setting.key;
  while (true) {
    const std::size_t dot = path.rfind('.');
    std::string key = path.substr(dot == std::string::npos ? 0 : dot + 1);
    if (key.empty()) {
      throw std::invalid_argument(
          fmt::format("{}: a part of the key is empty", setting.place.Text()));
    }
    Tree outer;
    outer.place = setting.place;
    outer.Add(std::move(key), setting.place, std::move(tree));
    tree = std::move(outer);
    if (dot == std::string::npos) return tree;
    path.resize(dot);
  }
}

// `settings`: with where the files that they name are looked for.
Scenario Build(const Tree& tree, const std::string& source, const std::vector<Setting>& settings,
               const Source& of_settings) {
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
  ReadSection(tree, "", "scenario", whole, {.folder = folder}, origins);
  // A base may have brought another file's place, and its name.
  origins.Set("", source);
  if (scenario.name.empty() || tree.Find("name") == nullptr) {
    scenario.name = fs::path(source).stem().string();
  }
  for (const Setting& setting : settings) {
    ReadSection(BranchOf(setting), "", "scenario", whole, of_settings, origins);
  }
  Resolve(scenario, origins);
  Validate(scenario, origins);
  return scenario;
}

Scenario Build(const Tree& tree, const std::string& source,
               const std::vector<std::string>& overrides) {
  std::vector<Setting> settings;
  for (const std::string& override : overrides) settings.push_back(ParseSetting(override));
  return Build(tree, source, settings,
               {.folder = ".", .then = fs::path(source).parent_path(), .override = true});
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

Scenario ReadScenario(const std::string& path, const std::vector<Setting>& settings,
                      const std::string& folder) {
  return Build(ReadYaml(path), path, settings, {.folder = folder, .override = true});
}

trainer::ModelConfig ReadModel(const std::string& path) {
  trainer::ModelConfig model;
  Origins origins;
  origins.Set("", path);
  ReadSection(ReadYaml(path), "", "model",
              {[&](Visitor& v) { Describe(model, v); }, [&] { model = {}; }},
              {.folder = fs::path(path).parent_path()}, origins);
  ValidateModel(model, "", origins);
  return model;
}

}  // namespace spes::scenarios
