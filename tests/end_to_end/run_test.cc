// What a run leaves behind, and what it does not depend on.
#include <gmock/gmock.h>

#include <csignal>
#include <map>
#include <set>
#include <thread>

#include "analysis/hdf5/log_reader.h"
#include "tests/end_to_end/program.h"

namespace spes::end_to_end {
namespace {

using ::testing::HasSubstr;

class RunTest : public ProgramTest {
 protected:
  RunTest() { Write("tiny.yaml", TinyScenario()); }

  analysis::RunLog RunAndRead(const std::string& options, const std::string& log = "run.h5") const {
    const Outcome outcome = Run("tiny.yaml --output " + log + " " + options);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return analysis::ReadRunLog(Path(log));
  }
};

TEST_F(RunTest, LeavesAFullLogASavedWorldAndASummary) {
  const Outcome outcome = Run("tiny.yaml --output run.h5");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const analysis::RunLog log = analysis::ReadRunLog(Path("run.h5"));
  EXPECT_EQ(log.status, "complete");
  EXPECT_EQ(log.world_hash.size(), 32U);
  EXPECT_THAT(outcome.out, HasSubstr(log.world_hash));
  EXPECT_THAT(outcome.out, HasSubstr("compute utilisation"));
  EXPECT_THAT(outcome.out, HasSubstr("\nBusiest link              node "));
  EXPECT_THAT(outcome.err, HasSubstr("round 1/2"));
  EXPECT_EQ(log.steps.size(), 4U * 8U);
  EXPECT_EQ(log.rounds.size(), 2U);
  EXPECT_EQ(log.node_rounds.size(), 8U);
  EXPECT_EQ(log.experts.size(), 2U * 2U * 4U);
  EXPECT_EQ(log.routing.size(), 2U * 2U);
  EXPECT_EQ(log.evals.size(), 3U);  // before training and after each round
  EXPECT_LT(log.evals.back().ce, log.evals.front().ce);
  EXPECT_FALSE(log.memory.empty());
  EXPECT_TRUE(std::filesystem::exists(folder / "run.safetensors"));
  for (const auto& step : log.steps) {
    EXPECT_GT(step.ce, 0);
    EXPECT_GT(step.grad_norm, 0);
    EXPECT_GT(step.lb, 0);
    EXPECT_EQ(step.tokens, 32);
  }
  std::set<std::string> kinds;
  for (const auto& event : log.events) kinds.insert(event.kind);
  EXPECT_TRUE(kinds.contains("join") && kinds.contains("merge") && kinds.contains("world saved"));
}

TEST_F(RunTest, TheWorldDoesNotDependOnWorkersOrTheNetwork) {
  const analysis::RunLog one = RunAndRead("--workers 1", "one.h5");
  const analysis::RunLog again = RunAndRead("--workers 1", "again.h5");
  const analysis::RunLog four = RunAndRead("--workers 4", "four.h5");
  EXPECT_EQ(one.world_hash, again.world_hash);
  EXPECT_EQ(one.world_hash, four.world_hash);
  const analysis::RunLog other = RunAndRead("--seed 2", "other.h5");
  EXPECT_NE(one.world_hash, other.world_hash);
#ifdef SPES_NS3
  const analysis::RunLog packets = RunAndRead("--set network.fidelity=packet", "packets.h5");
  EXPECT_EQ(one.world_hash, packets.world_hash);
  // Virtual time is the same for any number of workers too, to the last digit.
  const analysis::RunLog packets4 =
      RunAndRead("--set network.fidelity=packet --workers 4", "packets4.h5");
  ASSERT_EQ(packets.flows.size(), packets4.flows.size());
  for (std::size_t i = 0; i < packets.flows.size(); ++i) {
    EXPECT_EQ(packets.flows[i].end_s, packets4.flows[i].end_s);
  }
#endif
}

// The arithmetic is the same; only the way that the bytes take is another.
TEST_F(RunTest, TheWorldDoesNotDependOnTheExchangePattern) {
  const analysis::RunLog star = RunAndRead("", "star.h5");
  for (const std::string pattern : {"coordinators", "ring", "direct", "tree"}) {
    std::string options = "--set network.fidelity=fluid --set network.exchange.pattern=" + pattern;
    if (pattern == "coordinators") options += " --set network.exchange.coordinators=[lan]";
    const analysis::RunLog other = RunAndRead(options, pattern + ".h5");
    EXPECT_EQ(other.world_hash, star.world_hash) << pattern;
    std::int64_t up = 0, down = 0, sent = 0, received = 0;
    for (const auto& row : other.node_rounds) up += row.up_bytes, down += row.down_bytes;
    for (const auto& flow : other.flows) {
      if (flow.message != pattern) continue;
      if (flow.from >= 0) sent += flow.bytes;
      if (flow.to >= 0) received += flow.bytes;
    }
    EXPECT_GT(up, 0) << pattern;
    EXPECT_EQ(up, sent) << pattern;
    EXPECT_EQ(down, received) << pattern;
  }
}

TEST_F(RunTest, UploadsAreTheTrainableElementsAndFraming) {
  const analysis::RunLog log = RunAndRead("");
  // Trainable: all but three of the four experts of each layer, 3 · 32 · 32 elements each.
  std::int64_t parameters = 0;
  for (const auto& row : log.memory) {
    if (row.node == 0 && row.kind == "parameters") parameters = row.predicted_bytes / 4;
  }
  ASSERT_GT(parameters, 0);
  const std::int64_t trainable = parameters - 2 * 3 * 3 * 32 * 32;
  int offers = 0;
  for (const auto& flow : log.flows) {
    if (flow.message != "offer") continue;
    ++offers;
    EXPECT_GT(flow.bytes, 4 * trainable);
    EXPECT_LT(flow.bytes, 4 * trainable + 2000);  // step rows, routing counts, block headers
  }
  EXPECT_EQ(offers, 8);
  std::int64_t up = 0;
  for (const auto& row : log.node_rounds) up += row.up_bytes;
  std::int64_t sent = 0;
  for (const auto& flow : log.flows) sent += flow.message == "offer" ? flow.bytes : 0;
  EXPECT_EQ(up, sent);
}

#ifdef SPES_NS3
TEST_F(RunTest, WireBytesArePayloadHeadersAndRetransmissions) {
  const analysis::RunLog log = RunAndRead(
      "--set network.fidelity=packet --set nodes.groups.1.link.loss=0.005 --set sync.every=2 "
      "--set sync.merge.interval=2 --set training.steps=16");
  std::int64_t retransmissions = 0;
  for (const auto& flow : log.flows) {
    if (flow.bytes < 20000) continue;
    retransmissions += flow.retransmissions;
    const double segments = static_cast<double>(flow.bytes + flow.retransmitted_bytes) / 1448;
    const double headers =
        static_cast<double>(flow.wire_bytes - flow.bytes - flow.retransmitted_bytes);
    EXPECT_GT(headers, 53 * segments) << flow.flow;
    EXPECT_LT(headers, 60 * (segments + 4)) << flow.flow;
    EXPECT_GE(flow.rtt_mean_s, flow.rtt_min_s);
  }
  EXPECT_GT(retransmissions, 0);
}
#endif

std::map<std::string, std::int64_t> WireBytesOfLinks(const analysis::RunLog& log) {
  std::map<std::string, std::int64_t> sums;
  for (const auto& row : log.links) sums[row.name] += row.wire_bytes;
  return sums;
}

// At the level without headers, what a node's link carries is what its flows say.
TEST_F(RunTest, LinksCarryTheBytesOfTheFlows) {
  const analysis::RunLog log = RunAndRead("");
  std::map<std::string, std::int64_t> flows;
  for (const auto& flow : log.flows) {
    if (flow.from >= 0) flows["node " + std::to_string(flow.from) + " up"] += flow.bytes;
    if (flow.to >= 0) flows["node " + std::to_string(flow.to) + " down"] += flow.bytes;
  }
  EXPECT_EQ(flows.size(), 8U);
  std::map<std::string, std::int64_t> links = WireBytesOfLinks(log);
  for (const auto& [name, bytes] : flows) EXPECT_EQ(links[name], bytes) << name;
  std::set<double> ends;
  for (const auto& row : log.links) ends.insert(row.end_s);
  EXPECT_EQ(ends.size(), 3U);  // the rounds' ends, and that of the run
  for (const auto& round : log.rounds) EXPECT_TRUE(ends.contains(round.end_s));
}

TEST_F(RunTest, RecordsOfLinksChangeNothingElse) {
  std::vector<std::string> levels = {"ideal", "fluid"};
#ifdef SPES_NS3
  levels.insert(levels.end(), {"hybrid", "packet"});
#endif
  for (const std::string& level : levels) {
    const std::string options = "--set network.fidelity=" + level;
    const analysis::RunLog rare = RunAndRead(options, "rare.h5");
    const analysis::RunLog often =
        RunAndRead(options + " --set output.links_every=3ms", "often.h5");
    EXPECT_EQ(rare.world_hash, often.world_hash);
    ASSERT_EQ(rare.flows.size(), often.flows.size()) << level;
    for (std::size_t i = 0; i < rare.flows.size(); ++i) {
      EXPECT_EQ(rare.flows[i].end_s, often.flows[i].end_s) << level;
      EXPECT_EQ(rare.flows[i].wire_bytes, often.flows[i].wire_bytes) << level;
    }
    EXPECT_EQ(rare.rounds.back(), often.rounds.back()) << level;
    EXPECT_EQ(WireBytesOfLinks(rare), WireBytesOfLinks(often)) << level;
    EXPECT_GT(often.links.size(), 4 * rare.links.size()) << level;
    for (const auto& row : often.links) {
      EXPECT_LE(row.wire_bytes, row.capacity_bytes + 1502) << level << " " << row.name;
    }
  }
}

TEST_F(RunTest, ANodesTimesAddUpToTheRounds) {
  const analysis::RunLog log = RunAndRead("");
  for (const auto& row : log.node_rounds) {
    const auto& round = log.rounds[static_cast<std::size_t>(row.round - 1)];
    EXPECT_GE(row.start_s, round.start_s);
    EXPECT_NEAR(row.start_s + row.compute_s + row.up_s + row.wait_s, round.end_s, 1e-6);
    EXPECT_EQ(row.arrived, 1);
  }
  EXPECT_EQ(log.rounds[0].end_s, log.rounds[1].start_s);
}

TEST_F(RunTest, ThePrintedConfigurationRunsToTheSameWorld) {
  const analysis::RunLog direct = RunAndRead("--set sync.every=2 --set sync.merge.interval=2");
  const Outcome printed =
      Run("tiny.yaml --set sync.every=2 --set sync.merge.interval=2 --print-config");
  ASSERT_EQ(printed.code, 0);
  Write("printed.yaml", printed.out);
  ASSERT_EQ(Run("printed.yaml --output printed.h5 --quiet").code, 0);
  const analysis::RunLog again = analysis::ReadRunLog(Path("printed.h5"));
  EXPECT_EQ(direct.world_hash, again.world_hash);
  EXPECT_EQ(direct.info.scenario_hash, again.info.scenario_hash);
}

TEST_F(RunTest, ARunMayStartFromASavedWorld) {
  const analysis::RunLog first = RunAndRead("", "first.h5");
  const analysis::RunLog second =
      RunAndRead("--set training.start_from=first.safetensors", "second.h5");
  EXPECT_DOUBLE_EQ(second.evals.front().ce, first.evals.back().ce);
}

TEST_F(RunTest, QuietSaysNothing) {
  const Outcome outcome = Run("tiny.yaml --output run.h5 --quiet");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out + outcome.err, "");
}

// Starts a long run and sends it a signal once a round has been published.
class SignalTest : public RunTest {
 protected:
  int SignalAfterFirstRound(int signal) const {
    const pid_t child = fork();
    if (child == 0) {
      if (freopen("/dev/null", "w", stderr) == nullptr ||
          freopen(Path("out.txt").c_str(), "w", stdout) == nullptr) {
        _exit(127);
      }
      execl(SPES_PROGRAM, SPES_PROGRAM, Path("tiny.yaml").c_str(), "--output",
            Path("run.h5").c_str(), "--set", "training.steps=1000000", nullptr);
      _exit(127);
    }
    // The log may be read while it is written; a bounded number of looks, since nothing else tells.
    for (int i = 0; i < 3000; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      try {
        if (!analysis::ReadRunLog(Path("run.h5")).rounds.empty()) break;
      } catch (const std::runtime_error&) {
        continue;  // not there yet
      }
    }
    kill(child, signal);
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
};

TEST_F(SignalTest, CtrlCEndsCleanly) {
  EXPECT_EQ(SignalAfterFirstRound(SIGINT), 128 + SIGINT);
  const analysis::RunLog log = analysis::ReadRunLog(Path("run.h5"));
  EXPECT_EQ(log.status, "interrupted");
  EXPECT_EQ(log.world_hash.size(), 32U);
  EXPECT_GE(log.rounds.size(), 1U);
  EXPECT_TRUE(std::filesystem::exists(folder / "run.safetensors"));
  EXPECT_THAT(Read("out.txt"), HasSubstr("tiny: interrupted"));
}

TEST_F(SignalTest, AfterAKillTheLogIsReadable) {
  EXPECT_EQ(SignalAfterFirstRound(SIGKILL), -SIGKILL);
  const analysis::RunLog log = analysis::ReadRunLog(Path("run.h5"));
  EXPECT_EQ(log.status, "running");
  EXPECT_GE(log.rounds.size(), 1U);
  EXPECT_GE(log.steps.size(), 4U * 4U);
}

}  // namespace
}  // namespace spes::end_to_end
