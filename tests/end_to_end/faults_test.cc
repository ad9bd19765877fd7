// Simulated runs in which things go wrong: nodes and the coordinator end and begin anew,
// connections break, messages come damaged, twice or out of order.
#include <gmock/gmock.h>

#include <csignal>
#include <map>
#include <set>
#include <thread>

#include "tests/end_to_end/real_run.h"

namespace spes::end_to_end {
namespace {

using ::testing::HasSubstr;

// All kinds, each within the first 17 s of a run that takes 5 s without them.
constexpr const char* kEverything = R"(faults:
  detection: 200 ms
  scripted:
    - {at: 100 ms, kind: slow, node: 2, duration: 1 s, factor: 3}
    - {at: 150 ms, kind: clock_jump, node: 1, duration: 1 h, factor: -1}
    - {at: 200 ms, kind: corrupt, node: 2}
    - {at: 200 ms, kind: crash, node: 1, duration: 700 ms}
    - {at: 500 ms, kind: repeat, node: 0, duration: 300 ms}
    - {at: 1500 ms, kind: crash, node: coordinator, duration: 1 s}
    - {at: 8 s, kind: outage, node: 0, duration: 400 ms}
    - {at: 8 s, kind: full_disk, node: 2, duration: 500 ms}
    - {at: 8200 ms, kind: half_open_up, node: 3, duration: 2 s}
    - {at: 14 s, kind: reorder, node: 1, duration: 700 ms}
    - {at: 14500 ms, kind: full_disk, node: coordinator, duration: 2 s}
    - {at: 14600 ms, kind: half_open_down, node: 2, duration: 1 s}
)";

// Processes and connections that come and go all the time.
constexpr const char* kRandom = R"(faults:
  detection: 100 ms
  random:
    - {kind: crash, mean_between: 20 s, mean_duration: 500 ms}
    - {kind: crash, nodes: coordinator, mean_between: 10 s, mean_duration: 300 ms}
    - {kind: outage, nodes: 0-1, mean_between: 10 s, mean_duration: 1 s}
    - {kind: corrupt, nodes: 2, mean_between: 30 s}
)";

class FaultsTest : public RealRunTest {
 protected:
  FaultsTest() {
    Write("all.yaml", TinyScenario() + std::string(kEverything));
    Write("random.yaml", TinyScenario() + std::string(kRandom));
  }
  analysis::RunLog LogOf(const std::string& arguments, const std::string& log) const {
    const Outcome outcome = Run(arguments + kSteps + " --output " + log);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return analysis::ReadRunLog(Path(log));
  }
  static constexpr const char* kSteps = " --set training.steps=24 --set output.eval_every=0";
};

std::map<std::string, int> Faults(const analysis::RunLog& log) {
  std::map<std::string, int> kinds;
  for (const auto& event : log.events) {
    if (event.kind.starts_with("fault/")) ++kinds[event.kind.substr(6)];
  }
  return kinds;
}

// Without where the world was saved.
std::vector<std::string> Events(const analysis::RunLog& log) {
  std::vector<std::string> events;
  for (const auto& event : log.events) {
    if (event.kind == "world saved") continue;
    events.push_back(std::to_string(event.virtual_s) + " s, " + std::to_string(event.node) + ": " +
                     event.kind + " " + event.detail);
  }
  return events;
}

// Each step of each node and each round is there once, whatever was lost on the way.
void ExpectWhole(const analysis::RunLog& log) {
  std::set<std::pair<int, std::int64_t>> steps;
  for (const auto& step : log.steps) steps.insert({step.node, step.step});
  EXPECT_EQ(steps.size(), 4U * 24U);
  EXPECT_EQ(log.steps.size(), steps.size());
  ASSERT_EQ(log.rounds.size(), 6U);
  for (std::size_t i = 0; i < log.rounds.size(); ++i) {
    EXPECT_EQ(log.rounds[i].round, static_cast<std::int32_t>(i) + 1);
    EXPECT_EQ(log.rounds[i].arrived, 4);
  }
}

TEST_F(FaultsTest, WhateverGoesWrongAndIsMadeGoodLeavesTheSameWorld) {
  const analysis::RunLog none = LogOf("tiny.yaml", "none.h5");
  ExpectWhole(none);
  EXPECT_TRUE(Faults(none).empty());
  const analysis::RunLog one = LogOf("all.yaml --workers 1", "one.h5");
  EXPECT_EQ(one.world_hash, none.world_hash);
  ExpectWhole(one);
  const std::map<std::string, int> faults = Faults(one);
  for (const char* kind : {"crash", "slow", "outage", "half_open_up", "half_open_down", "corrupt",
                           "repeat", "reorder", "full_disk", "clock_jump"}) {
    EXPECT_TRUE(faults.contains(kind)) << kind;
  }
  std::map<std::string, int> kinds;
  for (const auto& event : one.events) ++kinds[event.kind];
  EXPECT_GE(kinds["down"], 3);
  EXPECT_EQ(kinds["down"], kinds["up"]);
  EXPECT_GE(kinds["missing"], 4);
  EXPECT_GE(kinds["reject"], 1);
  EXPECT_EQ(kinds["lost"], 0);
  EXPECT_THAT(Read("out.txt"), HasSubstr("\nFaults                    1 clock_jump, 1 corrupt, 2 "
                                         "crash, 2 full_disk, "));
  // Virtual time does not depend on the number of workers either.
  const analysis::RunLog two = LogOf("all.yaml --workers 2", "two.h5");
  EXPECT_EQ(two.world_hash, none.world_hash);
  EXPECT_EQ(Events(two), Events(one));
  ASSERT_EQ(two.flows.size(), one.flows.size());
  for (std::size_t i = 0; i < one.flows.size(); ++i) {
    EXPECT_EQ(two.flows[i].end_s, one.flows[i].end_s);
  }
#ifdef SPES_NS3
  const analysis::RunLog packets = LogOf("all.yaml --set network.fidelity=packet", "packets.h5");
  EXPECT_EQ(packets.world_hash, none.world_hash);
  ExpectWhole(packets);
  EXPECT_EQ(Faults(packets), faults);
#endif
}

TEST_F(FaultsTest, RandomOnesComeFromTheSeed) {
  const std::string hash = LogOf("tiny.yaml", "none.h5").world_hash;
  const analysis::RunLog one = LogOf("random.yaml --workers 1", "one.h5");
  const analysis::RunLog two = LogOf("random.yaml --workers 2", "two.h5");
  EXPECT_EQ(one.world_hash, hash);
  EXPECT_EQ(two.world_hash, hash);
  ExpectWhole(one);
  EXPECT_EQ(Events(one), Events(two));
  const std::map<std::string, int> faults = Faults(one);
  EXPECT_TRUE(faults.contains("crash") && faults.contains("outage"));
  const analysis::RunLog other = LogOf("random.yaml --seed 2", "other.h5");
  EXPECT_NE(Faults(other), faults);
  EXPECT_EQ(other.world_hash, LogOf("tiny.yaml --seed 2", "none2.h5").world_hash);
}

TEST_F(FaultsTest, ARunWithFaultsThatWasKilledIsResumed) {
  const std::string steps = "--set training.steps=400 --set output.eval_every=0 ";
  const std::string hash = HashOf(steps, "whole.h5");
  const std::string options = "random.yaml " + steps + "--set output.journal=j --output a.h5 ";
  const auto run = std::make_unique<Background>(folder.string(), options, "a.txt");
  while (!std::filesystem::exists(folder / "j/coordinator/round-00000005.safetensors")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  run->Signal(SIGKILL);
  ASSERT_EQ(run->Wait(), -SIGKILL);
  const Outcome resumed = Run(options + "--resume");
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr(hash));
  EXPECT_THAT(resumed.out, HasSubstr("\nFaults   "));
}

TEST_F(FaultsTest, ANodeThatIsGoneForGoodIsMissedForAWhile) {
  Write("gone.yaml",
        std::string(TinyScenario()) + "faults: {scripted: [{at: 1 s, kind: crash, node: 1}]}\n");
  const analysis::RunLog log = LogOf("gone.yaml --set sync.patience=30s", "gone.h5");
  EXPECT_EQ(log.status, "complete");
  EXPECT_EQ(log.rounds.back().arrived, 3);
  double missing = 0, lost = 0;
  for (const auto& event : log.events) {
    if (event.node == 1 && event.kind == "missing") missing = event.virtual_s;
    if (event.node == 1 && event.kind == "lost") lost = event.virtual_s;
  }
  EXPECT_NEAR(missing, 2, 1e-6);  // detection takes a second
  EXPECT_NEAR(lost, 32, 1e-6);
  EXPECT_GT(log.rounds.back().end_s, 32);
}

class StandsStill : public FaultsTest {
 protected:
  // The run ends with one line and exit code 3.
  std::string LineOf(const std::string& faults, const std::string& options) const {
    Write("still.yaml", TinyScenario() + faults);
    const Outcome outcome = Run("still.yaml --output still.h5 --quiet " + options);
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(analysis::ReadRunLog(Path("still.h5")).status, "failed");
    return outcome.err;
  }
};

TEST_F(StandsStill, WhereAllNodesAreGoneForGood) {
  const std::string all =
      "faults:\n  scripted:\n    - {at: 100 ms, kind: crash, node: 0}\n"
      "    - {at: 200 ms, kind: crash, node: 1}\n    - {at: 100 ms, kind: crash, node: 2}\n"
      "    - {at: 300 ms, kind: crash, node: 3}\n";
  EXPECT_THAT(LineOf(all, ""),
              HasSubstr("the run stands still after round 0 of 2: all nodes have crashed for good; "
                        "waited for: node 0 (ended for good), node 1 (ended for good), node 2 "
                        "(ended for good), node 3 (ended for good)"));
}

TEST_F(StandsStill, WhereANodeNeverGetsThroughARound) {
  const std::string often =
      "faults:\n  give_up_after: 1 min\n  random:\n"
      "    - {kind: crash, nodes: 3, mean_between: 100 ms, mean_duration: 1 s}\n";
  const std::string line = LineOf(often, "");
  EXPECT_THAT(line, HasSubstr("no round has ended for 1 min (faults.give_up_after); waited for: "));
  EXPECT_THAT(line, HasSubstr("node 3 ("));
}

// What breaks no connection goes with every pattern.
TEST_F(FaultsTest, ASlowNodeDelaysARingAndChangesNothingElse) {
  Write("slow.yaml", std::string(TinyScenario()) +
                         "faults: {scripted: [{at: 0 s, kind: slow, node: 1, duration: 1 h, "
                         "factor: 10}]}\n");
  const std::string ring = " --set network.exchange.pattern=ring";
  const analysis::RunLog none = LogOf("tiny.yaml" + ring, "none.h5");
  const analysis::RunLog slow = LogOf("slow.yaml" + ring, "slow.h5");
  EXPECT_EQ(slow.world_hash, none.world_hash);
  EXPECT_GT(slow.rounds.back().end_s, 3 * none.rounds.back().end_s);
}

}  // namespace
}  // namespace spes::end_to_end
