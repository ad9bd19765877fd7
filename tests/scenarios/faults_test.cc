#include "scenarios/faults.h"

#include <gmock/gmock.h>

#include "scenarios/printer.h"
#include "scenarios/scenario_hash.h"
#include "tests/scenarios/scenario_testing.h"

namespace spes::scenarios {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;
using trainer::FaultKind;

// kSmall, with two nodes, and faults, whose first line is 5.
std::string Faults(const std::string& text) { return kSmall + "faults:" + text; }
std::string FaultsError(const std::string& text) { return ParseError(Faults(text)); }
std::string Scripted(const std::string& text) {
  return FaultsError("\n  scripted:\n    - {" + text + "}\n");
}
std::string Random(const std::string& text) {
  return FaultsError("\n  random:\n    - {" + text + "}\n");
}

TEST(Faults, AreNoneUnlessSaid) {
  EXPECT_FALSE(HasFaults(Parse(kSmall)));
  EXPECT_FALSE(HasFaults(Parse(Faults(" {detection: 3 s}\n"))));
  EXPECT_EQ(ScenarioHash(Parse(kSmall)), ScenarioHash(Parse(Faults(" {detection: 3 s}\n"))));
  EXPECT_THAT(PrintScenario(Parse(kSmall)), HasSubstr("\nfaults: {}\n"));
}

TEST(Faults, AreReadAsThePlanHasThem) {
  const Scenario scenario = Parse(Faults(R"(
  scripted:
    - {at: 10 s, kind: crash, node: 1, duration: 1 min}
    - {at: 20 s, kind: crash, node: 0}
    - {at: 30 s, kind: full_disk, node: coordinator, duration: 5 s}
    - {at: 40 s, kind: slow, node: 0, duration: 1 h, factor: 2.5}
    - {at: 50 s, kind: corrupt, node: 1}
  random:
    - {kind: outage, mean_between: 1 h, mean_duration: 10 s}
    - {kind: crash, nodes: coordinator, mean_between: 2 h, mean_duration: 20 s}
    - {kind: clock_jump, nodes: 1, mean_between: 3 h, mean_duration: 30 s, factor: -1}
    - {kind: corrupt, nodes: 0-1, mean_between: 4 h}
  detection: 3 s
seed: 9
)"));
  const trainer::FaultPlanConfig config = BuildFaults(scenario);
  EXPECT_EQ(config.scripted,
            (std::vector<trainer::Fault>{
                {seconds(10), FaultKind::kCrash, 1, minutes(1), 1},
                {seconds(20), FaultKind::kCrash, 0, sim::kNever, 1},
                {seconds(30), FaultKind::kFullDisk, trainer::kCoordinator, seconds(5), 1},
                {seconds(40), FaultKind::kSlow, 0, hours(1), 2.5},
                {seconds(50), FaultKind::kCorrupt, 1, seconds(0), 1}}));
  ASSERT_EQ(config.random.size(), 4U);
  EXPECT_EQ(config.random[0].nodes, (std::vector<int>{0, 1}));
  EXPECT_EQ(config.random[1].nodes, std::vector<int>{trainer::kCoordinator});
  EXPECT_EQ(config.random[2].nodes, std::vector<int>{1});
  EXPECT_EQ(config.random[2].factor, -1);
  EXPECT_EQ(config.random[2].mean_between, hours(3));
  EXPECT_EQ(config.random[3].mean_duration, seconds(0));
  EXPECT_EQ(config.seed, 9U);
  EXPECT_EQ(config.until, sim::kNever);
  EXPECT_EQ(scenario.faults.detection, seconds(3));
  const std::string text = PrintScenario(scenario);
  EXPECT_EQ(PrintScenario(ParseScenario(text, "printed.yaml")), text);
  EXPECT_NE(ScenarioHash(scenario), ScenarioHash(Parse(kSmall + "seed: 9\n")));
}

TEST(Faults, EachMistakeIsNamed) {
  EXPECT_THAT(Scripted("kind: crahs, node: 1"), HasSubstr("did you mean 'crash'"));
  EXPECT_EQ(Scripted("kind: crash"),
            "s.yaml:7: faults.scripted.0: names no node; give its number as `node`, or "
            "coordinator");
  EXPECT_EQ(Scripted("kind: crash, node: 2, duration: 1 s"),
            "s.yaml:7: faults.scripted.0.node: '2' names nodes that are not there; they are 0 to "
            "1");
  EXPECT_EQ(Scripted("kind: crash, node: 0-1, duration: 1 s"),
            "s.yaml:7: faults.scripted.0.node: '0-1' names 2 nodes; write an item for each");
  EXPECT_EQ(Scripted("kind: crash, node: coordinator"),
            "s.yaml:7: faults.scripted.0: the coordinator crashes for good, and the run could not "
            "end without it; give a duration");
  EXPECT_EQ(Scripted("kind: outage, node: coordinator, duration: 1 s"),
            "s.yaml:7: faults.scripted.0: the coordinator has no faults of kind outage");
  EXPECT_EQ(Scripted("kind: outage, node: 1"),
            "s.yaml:7: faults.scripted.0: a fault of kind outage needs a duration");
  EXPECT_EQ(Scripted("kind: corrupt, node: 1, duration: 1 s"),
            "s.yaml:7: faults.scripted.0.duration: corrupt lasts no time; leave it out");
  EXPECT_EQ(Scripted("kind: outage, node: 1, duration: 1 s, factor: 2"),
            "s.yaml:7: faults.scripted.0.factor: is for slow and clock_jump, not for outage");
  EXPECT_THAT(Scripted("kind: slow, node: 1, duration: 1 s"), HasSubstr("slow needs a factor"));
  EXPECT_EQ(Scripted("kind: slow, node: 1, duration: 1 s, factor: -2"),
            "s.yaml:7: faults.scripted.0: a factor of -2: of slow it must be positive");
  EXPECT_THAT(Scripted("kind: slow, node: 1, duration: 1 s, factor: 1000"), HasSubstr("at most"));
  EXPECT_THAT(Scripted("kind: crash, node: 1, duration: 5"), HasSubstr("has no unit"));
  EXPECT_EQ(Random("kind: crash, mean_duration: 1 s"),
            "s.yaml:7: faults.random.0: says not how often it comes; give mean_between");
  EXPECT_EQ(Random("kind: crash, mean_between: 1 h"),
            "s.yaml:7: faults.random.0: says not how long crash lasts; give mean_duration");
  EXPECT_THAT(Random("kind: crash, nodes: 1-3, mean_between: 1 h, mean_duration: 1 s"),
              HasSubstr("faults.random.0.nodes: '1-3' names nodes that are not there"));
  EXPECT_THAT(Random("kind: corrupt, mean_between: 1 h, mean_duration: 1 s"),
              HasSubstr("faults.random.0.mean_duration: corrupt lasts no time"));
}

TEST(Faults, AreOfSimulationsThroughTheCoordinator) {
  const std::string crash = Faults("\n  scripted: [{kind: crash, node: 1, duration: 1 s}]\n");
  EXPECT_EQ(ParseError(crash), "no error");
  EXPECT_THAT(ParseError(crash, {"transport.kind=tcp"}), HasSubstr("faults: are simulated; with"));
  EXPECT_EQ(ParseError(crash, {"network.exchange.pattern=ring"}),
            "s.yaml:6: faults.scripted.0: crash cannot be with network.exchange.pattern: ring, "
            "which takes all nodes in every round; slow and clock_jump can, or use the pattern "
            "coordinator");
  EXPECT_EQ(ParseError(Faults("\n  scripted: [{kind: slow, node: 1, duration: 1 s, factor: 2}]\n"),
                       {"network.exchange.pattern=ring"}),
            "no error");
}

}  // namespace
}  // namespace spes::scenarios
