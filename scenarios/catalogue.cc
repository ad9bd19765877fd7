#include "scenarios/catalogue.h"

#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "scenarios/folders.h"
#include "scenarios/nearest.h"
#include "scenarios/section_reader.h"
#include "scenarios/yaml_tree.h"

namespace spes::scenarios {

namespace fs = std::filesystem;

Catalogue ReadCatalogue(const std::string& path) {
  const Tree tree = ReadYaml(path);
  if (tree.kind != Tree::Kind::kMap) {
    throw std::invalid_argument(
        fmt::format("{}: must be a mapping of names to corpora", tree.place.Text()));
  }
  Catalogue catalogue;
  for (std::size_t i = 0; i < tree.keys.size(); ++i) {
    const Tree::Key& key = tree.keys[i];
    CorpusEntry& entry = catalogue[key.name];
    Origins origins;
    ReadSection(tree.items[i], key.name, "",
                {[&](Visitor& v) { Describe(entry, v); }, [&] { entry = {}; }},
                {.folder = fs::path(path).parent_path()}, origins);
    if (entry.package.empty() || entry.files.empty()) {
      throw std::invalid_argument(
          fmt::format("{}: {}: a corpus needs a package and files", key.place.Text(), key.name));
    }
  }
  return catalogue;
}

Catalogue InstalledCatalogue() {
  return ReadCatalogue((InstalledScenarios() / "corpora.yaml").string());
}

const CorpusEntry& FindCorpus(const Catalogue& catalogue, const std::string& name) {
  const auto found = catalogue.find(name);
  if (found != catalogue.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, entry] : catalogue) names.push_back(known);
  throw std::invalid_argument(
      fmt::format("the catalogue has no corpus {}{}", Quoted(name), Suggestion(name, names)));
}

void ResolveCorpora(trainer::DataConfig& data, const Catalogue& catalogue) {
  for (trainer::DomainConfig& domain : data.domains) {
    if (domain.corpus.empty()) continue;
    const CorpusEntry& entry = FindCorpus(catalogue, domain.corpus);
    domain.files.clear();
    for (const std::string& file : entry.files) {
      const fs::path whole = DependencyFolder() / "corpora" / entry.package / file;
      std::error_code ignored;
      if (!fs::is_regular_file(whole, ignored)) {
        throw std::invalid_argument(
            fmt::format("corpus '{}' is not here: run ./dev setup, which unpacks the package {}",
                        domain.corpus, entry.package));
      }
      domain.files.push_back(whole.string());
    }
  }
}

void ResolveCorpora(trainer::DataConfig& data) {
  bool any = false;
  for (const trainer::DomainConfig& domain : data.domains) any |= !domain.corpus.empty();
  if (any) ResolveCorpora(data, InstalledCatalogue());
}

}  // namespace spes::scenarios
