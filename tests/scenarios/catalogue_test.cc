#include "scenarios/catalogue.h"

#include "tests/scenarios/scenario_testing.h"

namespace spes::scenarios {
namespace {

const std::string kCatalogue =
    "alpha:\n  package: text-alpha\n  version: '1.0'\n  files: [usr/a.txt, usr/b.gz]\n"
    "  about: letters\n"
    "beta: {package: text-beta, files: usr/b}\n";

TEST(Catalogue, ReadsEntries) {
  const TempFolder folder;
  const Catalogue catalogue = ReadCatalogue(folder.Write("corpora.yaml", kCatalogue));
  ASSERT_EQ(catalogue.size(), 2u);
  EXPECT_EQ(FindCorpus(catalogue, "alpha").package, "text-alpha");
  EXPECT_EQ(FindCorpus(catalogue, "alpha").version, "1.0");
  EXPECT_EQ(FindCorpus(catalogue, "alpha").files,
            (std::vector<std::string>{"usr/a.txt", "usr/b.gz"}));
  EXPECT_EQ(ErrorOf([&] { FindCorpus(catalogue, "alpa"); }),
            "the catalogue has no corpus 'alpa'; did you mean 'alpha'?");
  EXPECT_EQ(ErrorOf([&] { FindCorpus(catalogue, "zzzzz"); }),
            "the catalogue has no corpus 'zzzzz'; there is alpha and beta");
}

TEST(Catalogue, RefusesJunk) {
  const TempFolder folder;
  const auto error = [&](const std::string& text) {
    const std::string file = folder.Write("corpora.yaml", text);
    return ErrorOf([&] { ReadCatalogue(file); }).substr(file.size());
  };
  EXPECT_EQ(error("a: {package: p, flies: [x]}\n"),
            ":1: unknown key 'flies' in 'a'; did you mean 'files'?");
  EXPECT_EQ(error("\na: {package: p}\n"), ":2: a: a corpus needs a package and files");
  EXPECT_EQ(error("- a\n"), ":1: must be a mapping of names to corpora");
}

TEST(Corpora, BecomeTheFilesOfTheirPackages) {
  const TempFolder folder;
  const Environment deps("SPES_DEPS", folder.Path(""));
  const std::string a = folder.Write("corpora/text-alpha/usr/a.txt", "a");
  const Catalogue catalogue = ReadCatalogue(folder.Write("corpora.yaml", kCatalogue));
  trainer::DataConfig data;
  data.domains.resize(2);
  data.domains[0].corpus = "alpha";
  data.domains[1].files = {"other.txt"};
  EXPECT_EQ(ErrorOf([&] { ResolveCorpora(data, catalogue); }),
            "corpus 'alpha' is not here: run ./dev setup, which unpacks the package text-alpha");
  const std::string b = folder.Write("corpora/text-alpha/usr/b.gz", "b");
  ResolveCorpora(data, catalogue);
  EXPECT_EQ(data.domains[0].files, (std::vector<std::string>{a, b}));
  EXPECT_EQ(data.domains[1].files, std::vector<std::string>{"other.txt"});
  data.domains[0].corpus = "alhpa";
  EXPECT_EQ(ErrorOf([&] { ResolveCorpora(data, catalogue); }),
            "the catalogue has no corpus 'alhpa'; did you mean 'alpha'?");
}

TEST(Corpora, TheCatalogueThatComesWithTheProgramReads) {
  const Catalogue catalogue = InstalledCatalogue();
  for (const char* name : {"gcide", "wordnet"}) EXPECT_TRUE(catalogue.contains(name)) << name;
  for (const auto& [name, entry] : catalogue) {
    EXPECT_NE(entry.about, "") << name;
    EXPECT_NE(entry.version, "") << name;
  }
}

}  // namespace
}  // namespace spes::scenarios
