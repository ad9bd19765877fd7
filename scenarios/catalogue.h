// Corpora by name: which package holds them and which of its files.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "trainer/data/config.h"

namespace spes::scenarios {

struct CorpusEntry {
  std::string package;
  std::string version;
  std::vector<std::string> files;  // inside the package, in order
  std::string about;
};

using Catalogue = std::map<std::string, CorpusEntry>;

// Reads corpora.yaml: name → entry. Throws std::invalid_argument with one line.
Catalogue ReadCatalogue(const std::string& path);

// The one that is installed with the scenarios.
Catalogue InstalledCatalogue();

// The entry of a name. Throws std::invalid_argument naming the nearest one.
const CorpusEntry& FindCorpus(const Catalogue& catalogue, const std::string& name);

// Fills the files of every domain that names a corpus: $SPES_DEPS (~/.cache/spes-sim without it),
// /corpora/<package>/<file>. Throws std::invalid_argument with one line when a name is unknown or
// the package is not unpacked.
void ResolveCorpora(trainer::DataConfig& data, const Catalogue& catalogue);
void ResolveCorpora(trainer::DataConfig& data);

}  // namespace spes::scenarios
