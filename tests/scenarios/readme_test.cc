// The scenarios that README.md shows can be read.

#include "scenarios/study.h"
#include "scenarios/text_file.h"
#include "tests/scenarios/scenario_testing.h"

namespace spes::scenarios {
namespace {

// The blocks between ```yaml and ```.
std::vector<std::string> YamlBlocks(const std::string& text) {
  std::vector<std::string> blocks;
  bool inside = false;
  for (const std::string_view line : Lines(text)) {
    if (inside && line == "```") {
      inside = false;
    } else if (inside) {
      blocks.back() += std::string(line) + "\n";
    } else if (line == "```yaml") {
      inside = true;
      blocks.emplace_back();
    }
  }
  return blocks;
}

// Scenarios have no axes and no list of runs.
bool IsStudy(const std::string& block) {
  return block.find("\naxes:") != std::string::npos || block.find("\nruns:") != std::string::npos;
}

TEST(Readme, EveryScenarioReads) {
  const std::vector<std::string> blocks = YamlBlocks(ReadText(SPES_SOURCE_DIR "/README.md"));
  EXPECT_GE(blocks.size(), 6u);
  for (const std::string& block : blocks) {
    SCOPED_TRACE(block);
    if (IsStudy(block)) continue;
    const std::string sync =
        ("\n" + block).find("\nsync:") == std::string::npos ? "sync: {every: 5}\n" : "";
    const std::string rest =
        "model: {experts: 4}\n" + sync +
        "data: {domains: [{name: toy, synthetic: true, synthetic_tokens: 1000}]}\n";
    EXPECT_EQ(ParseError(block + rest), "no error");
  }
}

TEST(Readme, EveryStudyMakesItsRuns) {
  const TempFolder folder;
  int studies = 0;
  for (const std::string& block : YamlBlocks(ReadText(SPES_SOURCE_DIR "/README.md"))) {
    if (!IsStudy(block)) continue;
    SCOPED_TRACE(block);
    ++studies;
    const Study study = ReadStudy(folder.Write("study.yaml", block));
    const std::vector<StudyRun> runs = StudyRuns(study);
    EXPECT_GE(runs.size(), 2u);
    for (const StudyRun& run : runs) EXPECT_NO_THROW(ScenarioOf(study, run)) << run.name;
  }
  EXPECT_GE(studies, 1);
}

// The table names all of them.
TEST(Readme, EveryLevelIsExplained) {
  const std::string text = ReadText(SPES_SOURCE_DIR "/README.md");
  for (const char* level : {"packet", "coarse", "hybrid", "fluid", "ideal"}) {
    EXPECT_NE(text.find(std::string("\n| `") + level + "` |"), std::string::npos) << level;
  }
}

}  // namespace
}  // namespace spes::scenarios
