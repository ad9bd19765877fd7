// The files under scenarios/ that come with the program.

#include <algorithm>
#include <filesystem>
#include <set>

#include "scenarios/printer.h"
#include "scenarios/study.h"
#include "scenarios/topology_builder.h"
#include "sim/link_graph.h"
#include "tests/scenarios/scenario_testing.h"

namespace spes::scenarios {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> YamlFiles(const std::string& folder) {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(SPES_SOURCE_DIR "/" + folder)) {
    if (entry.path().extension() == ".yaml" && entry.path().filename() != "corpora.yaml") {
      files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(Shipped, EveryScenarioReadsAndPrintsBack) {
  const std::vector<std::string> files = YamlFiles("scenarios");
  EXPECT_GE(files.size(), 5u);
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    const Scenario scenario = ReadScenario(file);
    EXPECT_EQ(scenario.name, fs::path(file).stem());
    const std::string text = PrintScenario(scenario);
    EXPECT_EQ(PrintScenario(ParseScenario(text, "elsewhere/printed.yaml")), text);
    EXPECT_NO_THROW(BuildTopology(scenario));
  }
}

TEST(Shipped, EveryStudyMakesItsRuns) {
  const std::vector<std::string> files = YamlFiles("scenarios/studies");
  EXPECT_GE(files.size(), 1u);
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    const Study study = ReadStudy(file);
    EXPECT_FALSE(study.target_loss.empty());
    for (const StudyRun& run : StudyRuns(study)) EXPECT_NO_THROW(ScenarioOf(study, run));
  }
}

TEST(Shipped, EveryModelReads) {
  const std::vector<std::string> files = YamlFiles("scenarios/models");
  EXPECT_GE(files.size(), 4u);
  for (const std::string& file : files) EXPECT_NO_THROW(ReadModel(file)) << file;
}

TEST(Shipped, ModelsHaveTheOfficialSizes) {
  const auto expect = [](const char* name, std::int64_t total, std::int64_t shared,
                         std::int64_t expert, std::int64_t active) {
    SCOPED_TRACE(name);
    const trainer::ModelConfig model =
        ReadModel(std::string(SPES_SOURCE_DIR "/scenarios/models/") + name);
    const auto table = trainer::MakeBlockTable(model);
    EXPECT_EQ(table->TotalElements(), total);
    EXPECT_EQ(table->SharedElements(), shared);
    EXPECT_EQ(table->ExpertElements(), expert);
    EXPECT_EQ(trainer::ActiveElements(model), active);
  };
  expect("spes_1b.yaml", 1'167'423'744, 261'454'080, 56'623'104, 374'700'288);
  expect("spes_2b.yaml", 1'988'660'224, 378'047'488, 100'663'296, 579'374'080);  // our own choice
  expect("spes_7b.yaml", 7'333'287'936, 890'836'992, 201'326'592, 1'696'143'360);
  expect("spes_9b.yaml", 9'430'950'912, 975'234'048, 1'056'964'608, 3'089'163'264);
}

TEST(Shipped, AnyScenarioTakesAnyModel) {
  const std::string scenario = SPES_SOURCE_DIR "/scenarios/4node_lan.yaml";
  for (const std::string& file : YamlFiles("scenarios/models")) {
    EXPECT_NO_THROW(ReadScenario(scenario, {"model=" + file})) << file;
  }
  EXPECT_EQ(ReadScenario(scenario, {"model=models/spes_7b.yaml"}).model.experts, 32);
}

TEST(Shipped, SixteenUnequalNodesOverSeveralSites) {
  const Scenario s = ReadScenario(SPES_SOURCE_DIR "/scenarios/16node_internet.yaml");
  const sim::Topology t = BuildTopology(s);
  EXPECT_EQ(NodeCount(s), 16);
  EXPECT_EQ(s.model.experts, 16);
  EXPECT_GE(t.sites.size(), 4u);
  std::set<std::pair<double, double>> links;
  for (int n = 0; n < 16; ++n) {
    links.insert({t.hosts[static_cast<std::size_t>(n)].link.up_bps,
                  NodeSpeeds(s)[static_cast<std::size_t>(n)]});
  }
  EXPECT_GE(links.size(), 4u);
}

Scenario ReadShipped(const std::string& name) {
  return ReadScenario(SPES_SOURCE_DIR "/scenarios/" + name);
}

// What goes from one side to the other shares the cable.
TEST(Shipped, TheTransatlanticGraphHasOneBottleneck) {
  const Scenario s = ReadShipped("8node_transatlantic.yaml");
  const sim::LinkGraph g(BuildTopology(s), s.network.tcp);
  const int coordinator = 8;
  EXPECT_EQ(g.Rtt(0, coordinator), std::chrono::milliseconds(4 + 9 + 14 + 1));
  EXPECT_EQ(g.Rtt(4, coordinator), std::chrono::milliseconds(4 + 8 + 70 + 14 + 1));
  EXPECT_EQ(g.BottleneckBps(coordinator, 4), 150e6);
  EXPECT_EQ(g.BottleneckBps(4, coordinator), 80e6);
  const auto cable = [&](int node) { return g.Route(node, coordinator)[2]; };
  EXPECT_EQ(g.links()[static_cast<std::size_t>(cable(4))].name, "new_york → london");
  EXPECT_EQ(cable(4), cable(6));
  EXPECT_EQ(BuildBackground(s).size(), 1u);
}

TEST(Shipped, ClustersShareTheirSitesLinks) {
  const Scenario s = ReadShipped("8node_clusters.yaml");
  const sim::LinkGraph g(BuildTopology(s), s.network.tcp);
  EXPECT_EQ(g.BottleneckBps(0, 8), 200e6);
  EXPECT_EQ(g.BottleneckBps(8, 4), 300e6);
  EXPECT_EQ(g.Route(0, 8)[1], g.Route(3, 8)[1]);
  EXPECT_FALSE(g.links()[static_cast<std::size_t>(g.Route(4, 8)[1])].rate.constant()) << "diurnal";
}

TEST(Shipped, MobileNodesHaveRecordedLinks) {
  const Scenario s = ReadShipped("4node_mobile.yaml");
  const sim::LinkGraph g(BuildTopology(s), s.network.tcp);
  EXPECT_NEAR(g.BottleneckBps(4, 2), 6.9e6, 0.2e6);
  EXPECT_NEAR(g.BottleneckBps(3, 4), 2.1e6, 0.2e6);
  EXPECT_EQ(g.BottleneckBps(4, 0), 500e6);
}

}  // namespace
}  // namespace spes::scenarios
