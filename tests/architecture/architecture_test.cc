#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "tests/architecture/rules.h"
#include "tests/architecture/source_tree.h"

namespace spes::architecture {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

TEST(Architecture, TheTreeKeepsTheRules) {
  const SourceTree tree = ReadTree(SPES_SOURCE_DIR, Rooms());
  EXPECT_GT(tree.size(), 50u);
  for (const std::string& offence : Offences(tree)) ADD_FAILURE() << offence;
}

TEST(Architecture, IncludesAreRead) {
  std::istringstream text(
      "// A file.\n"
      "#include <vector>\n"
      "  #  include \"sim/units.h\"  // with a word\n"
      "// #include <not/this.h>\n");
  const SourceFile file = ReadSource(text);
  EXPECT_EQ(file.lines, 4);
  ASSERT_EQ(file.includes.size(), 2u);
  EXPECT_EQ(file.includes[0].name, "vector");
  EXPECT_FALSE(file.includes[0].quoted);
  EXPECT_EQ(file.includes[1].name, "sim/units.h");
  EXPECT_TRUE(file.includes[1].quoted);
  EXPECT_EQ(file.includes[1].line, 3);
}

SourceFile Source(const std::string& include, int lines = 10) {
  const bool quoted = include.front() == '"';
  return {.includes = {{include.substr(1, include.size() - 2), quoted, 7}}, .lines = lines};
}

// A tree with this one file added to some that are there to be included.
std::vector<std::string> OffencesOf(const std::string& path, const std::string& include) {
  SourceTree tree;
  for (const char* header : {"sim/units.h", "sim/ns3/packet_network.h", "sim/ns3/link.h",
                             "analysis/records.h", "analysis/statistics.h", "trainer/node.h",
                             "scenarios/scenario.h", "app/run.h", "tests/sim/levels.h"}) {
    tree[header] = {};
  }
  tree["trainer/model/model.h"] = Source("<torch/torch.h>");
  tree[path] = Source(include);
  return Offences(tree);
}

TEST(Architecture, WhatIsAllowedPasses) {
  for (const auto& [path, include] : std::vector<std::pair<std::string, std::string>>{
           {"sim/a.cc", "<vector>"},
           {"sim/a.cc", "\"sim/units.h\""},
           {"sim/a.cc", "<fmt/format.h>"},
           {"sim/ns3/a.h", "<ns3/packet.h>"},
           {"analysis/hdf5/a.cc", "<hdf5.h>"},
           {"trainer/a.cc", "\"sim/units.h\""},
           {"trainer/a.cc", "\"analysis/records.h\""},
           {"trainer/model/a.cc", "<torch/torch.h>"},
           {"scenarios/a.cc", "\"trainer/node.h\""},
           {"app/a.cc", "\"sim/ns3/packet_network.h\""},
           {"app/a.cc", "<unistd.h>"},
           {"tests/sim/a.cc", "\"sim/ns3/link.h\""},
           {"tests/a.cc", "<gtest/gtest.h>"}}) {
    EXPECT_THAT(OffencesOf(path, include), IsEmpty()) << path << " " << include;
  }
}

TEST(Architecture, WhatIsForbiddenIsFound) {
  for (const auto& [path, include] : std::vector<std::pair<std::string, std::string>>{
           {"sim/a.cc", "\"analysis/records.h\""},
           {"sim/a.cc", "\"trainer/node.h\""},
           {"sim/a.cc", "\"tests/sim/levels.h\""},
           {"sim/a.cc", "\"units.h\""},
           {"sim/a.cc", "\"sim/no_such_file.h\""},
           {"sim/a.cc", "<ns3/packet.h>"},
           {"sim/a.cc", "<boost/asio.hpp>"},
           {"sim/a.cc", "\"sim/ns3/link.h\""},
           {"app/a.cc", "\"sim/ns3/link.h\""},
           {"analysis/a.cc", "\"sim/units.h\""},
           {"analysis/a.cc", "<hdf5.h>"},
           {"trainer/a.cc", "\"analysis/statistics.h\""},
           {"trainer/a.cc", "\"scenarios/scenario.h\""},
           {"trainer/protocol/a.cc", "<torch/torch.h>"},
           {"trainer/sync/a.cc", "<ATen/ATen.h>"},
           {"trainer/runtime/a.cc", "<asio.hpp>"},
           {"trainer/model/a.cc", "<sentencepiece_processor.h>"},
           {"scenarios/a.cc", "<yaml-cpp/yaml.h>"},
           {"scenarios/a.cc", "\"app/run.h\""},
           {"scenarios/a.cc", "<torch/torch.h>"},
           {"app/a.cc", "<torch/torch.h>"},
           {"app/a.cc", "<gtest/gtest.h>"},
           {"analysis/a.cc", "<CLI/CLI.hpp>"}}) {
    EXPECT_THAT(OffencesOf(path, include), ElementsAre(StartsWith(path + ":7: ")))
        << path << " " << include;
  }
}

TEST(Architecture, LibTorchMeetsNeitherNs3NorFmt) {
  SourceTree tree;
  tree["trainer/model/model.h"] = Source("<torch/torch.h>");
  tree["trainer/a.h"] = Source("\"trainer/model/model.h\"");
  tree["trainer/a.cc"] = Source("\"trainer/a.h\"");
  EXPECT_THAT(Offences(tree), IsEmpty());
  tree["trainer/a.cc"].includes.push_back({.name = "fmt/format.h", .line = 8});
  EXPECT_THAT(Offences(tree), ElementsAre(HasSubstr("LibTorch and fmt")));
}

TEST(Architecture, LongFilesAreFound) {
  SourceTree tree;
  tree["sim/short.cc"] = Source("<vector>", kLongestFile);
  EXPECT_THAT(Offences(tree), IsEmpty());
  tree["sim/long.cc"] = Source("<vector>", kLongestFile + 1);
  EXPECT_THAT(Offences(tree), ElementsAre(AllOf(StartsWith("sim/long.cc"), HasSubstr("longer"))));
}

}  // namespace
}  // namespace spes::architecture
