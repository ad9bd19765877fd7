// YAML to a typed scenario.
#pragma once

#include <string>
#include <vector>

#include "scenarios/catalogue.h"
#include "scenarios/scenario.h"
#include "scenarios/yaml_tree.h"

namespace spes::scenarios {

// Reads a scenario file, of that path or else of the installed scenarios; then changes it by each
// of the overrides ("sync.every=50", keys as dotted paths, list items by index:
// "nodes.groups.0.speed=2"); then resolves (resolve.h) and validates (validate.h) it.
//
// In place of a section's fields the name of a .yaml file that holds them may stand ("model:
// models/spes_2b.yaml"), or be given under the key `base` beside fields that change it; the top
// level may have a `base` as well. File names are relative to the file that says them (to the
// working directory for overrides), or else to the working directory or the installed scenarios.
//
// Throws std::invalid_argument with one line: "file:line: …" or "--set sync.evry=3: …".
Scenario ReadScenario(const std::string& path, const std::vector<std::string>& overrides = {});

// A key, as a dotted path, and the value that it gets.
struct Setting {
  std::string key;
  Tree value;
  Place place;  // where it is written
};

// A file at this path alone, changed by settings that are written in a file of `folder`. Throws as
// above; "study.yaml:7: sync.every: …".
Scenario ReadScenario(const std::string& path, const std::vector<Setting>& settings,
                      const std::string& folder);

// The same of a text; `source` is its file name in messages and the folder for names of files.
Scenario ParseScenario(const std::string& text, const std::string& source,
                       const std::vector<std::string>& overrides = {});

// A file that holds the fields of a model (scenarios/models), validated.
trainer::ModelConfig ReadModel(const std::string& path);

}  // namespace spes::scenarios
