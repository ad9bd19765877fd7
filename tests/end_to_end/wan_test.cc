// `spes-sim wan`: programs on the hosts of a scenario's network.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/end_to_end/background.h"
#include "tests/end_to_end/program.h"

namespace spes::end_to_end {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<std::string> SortedLines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::ranges::sort(lines);
  return lines;
}

#ifdef SPES_NS3

class WanTest : public ProgramTest {
 protected:
  WanTest() { Write("s.yaml", TinyScenario()); }
  ~WanTest() override { std::filesystem::remove("/run/spes-sim-wan-" + Prefix() + ".lock"); }

  Outcome Wan(const std::string& arguments, const std::string& before = "") const {
    return Run("wan s.yaml --prefix " + Prefix() + " " + arguments, before);
  }
  // Tests that run at the same time have namespaces of their own.
  static std::string Prefix() { return fmt::format("e2e-{:07}", getpid()); }

  // Of the processes whose numbers the file has, those that there are.
  std::string Living(const std::string& file) const {
    std::istringstream pids(Read(file));
    std::string living;
    for (std::string pid; pids >> pid;) {
      std::string command;  // of a process that nobody has waited for yet, too, it is empty
      std::ifstream("/proc/" + pid + "/cmdline") >> command;
      if (!command.empty()) living += pid + " ";
    }
    return living;
  }

  static int Namespaces() {
    int count = 0;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator("/run/netns", none)) {
      count += entry.path().filename().string().starts_with(Prefix() + "-");
    }
    return count;
  }
};

// Where the machine has no namespaces to give, there is nothing to test.
class WanOnHosts : public WanTest {
 protected:
  void SetUp() override {
    const Outcome probe = Wan("-- true");
    if (probe.code == 3) GTEST_SKIP() << probe.err;
  }
};

TEST_F(WanOnHosts, EveryHostRunsTheCommandAndKnowsWhoItIs) {
  const Outcome outcome =
      Wan("-- sh -c 'echo $SPES_HOST $SPES_ADDRESS $SPES_COORDINATOR; echo twice >&2'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(
      SortedLines(outcome.out),
      ElementsAre("coordinator: coordinator 10.77.0.5 10.77.0.5", "coordinator: twice",
                  "node 0: 0 10.77.0.1 10.77.0.5", "node 0: twice", "node 1: 1 10.77.0.2 10.77.0.5",
                  "node 1: twice", "node 2: 2 10.77.0.3 10.77.0.5", "node 2: twice",
                  "node 3: 3 10.77.0.4 10.77.0.5", "node 3: twice"));
  EXPECT_THAT(outcome.err, HasSubstr("% late, largest lag "));
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  EXPECT_EQ(Namespaces(), 0);
}

TEST_F(WanOnHosts, TheCommandMayRunOnSomeHostsAlone) {
  const Outcome outcome = Wan("--only coordinator,node2 -- ip -o -4 address show dev wan");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(SortedLines(outcome.out),
              ElementsAre(AllOf(StartsWith("coordinator: "), HasSubstr("10.77.0.5/16")),
                          AllOf(StartsWith("node 2: "), HasSubstr("10.77.0.3/16"))));
}

TEST_F(WanOnHosts, AHostThatFailsIsNamed) {
  const Outcome outcome = Wan("-- sh -c 'test $SPES_HOST != 1 || exit 7; echo rest; printf part'");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("spes-sim: wan: node 1 ended with 7\n"));
  EXPECT_THAT(outcome.out, HasSubstr("coordinator: rest\n")) << "the others go on";
  EXPECT_THAT(outcome.out, HasSubstr("node 3: part\n"));
}

TEST_F(WanOnHosts, AFailureMayEndAll) {
  const Outcome outcome = Wan(
      "--halt-on-failure -- sh -c 'test $SPES_HOST = 1 && exit 7; sleep 1000 & wait; echo rest'");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("spes-sim: wan: node 1 ended with 7\n"));
  EXPECT_EQ(outcome.out, "");
}

// From another network namespace, too: the names are the machine's.
TEST_F(WanOnHosts, APrefixIsOneProcesss) {
  const Outcome outcome =
      Wan("--only node0 -- sh -c 'unshare -n " SPES_PROGRAM " wan s.yaml --prefix " + Prefix() +
          " -- true'");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.out, HasSubstr("another process holds the namespaces " + Prefix() + "-*"));
}

TEST_F(WanOnHosts, AnInterruptEndsAllAndLeavesNothing) {
  const Outcome outcome =
      Wan("-- sh -c 'sleep 1000 & echo $! >>pids; wait'", "timeout --preserve-status -s INT 3");
  EXPECT_EQ(outcome.code, 128 + SIGINT) << outcome.err;
  EXPECT_EQ(Namespaces(), 0);
  EXPECT_EQ(Living("pids"), "") << "grandchildren too";
  EXPECT_EQ(std::ranges::count(Read("pids"), '\n'), 5);
}

TEST_F(WanOnHosts, WhoKillsItEndsAllTheSame) {
  Background wan(
      folder.string(),
      "wan s.yaml --prefix " + Prefix() + " -- sh -c 'sleep 1000 & echo $! >>pids; wait'", "w.txt");
  const auto until = [](const auto& done) {
    for (int i = 0; i < 3000 && !done(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return done();
  };
  ASSERT_TRUE(until([this] { return std::ranges::count(Read("pids"), '\n') == 5; }));
  wan.Signal(SIGKILL);
  EXPECT_EQ(wan.Wait(), -SIGKILL);
  EXPECT_TRUE(until([this] { return Living("pids").empty(); })) << Living("pids");
  EXPECT_EQ(Wan("-- true").code, 0) << "the namespaces' names are free again";
}

TEST_F(WanOnHosts, WithoutACommandItStaysUntilInterrupted) {
  const Outcome outcome = Wan("", "timeout --preserve-status -s TERM 3");
  EXPECT_EQ(outcome.code, 0) << "that is how it ends";
  EXPECT_THAT(outcome.out, HasSubstr("coordinator  " + Prefix() + "-coordinator  10.77.0.5"));
  EXPECT_THAT(outcome.out, HasSubstr("node 3       " + Prefix() + "-node3        10.77.0.4"));
  EXPECT_THAT(outcome.out, HasSubstr("50 Mbps   5 Mbps   41 ms"));
  EXPECT_THAT(outcome.out, HasSubstr("% late, largest lag "));
  EXPECT_EQ(Namespaces(), 0);
}

// The block between ```sh and ``` that README.md calls go.sh.
std::string ReadmesScript() {
  std::ifstream file(SPES_SOURCE_DIR "/README.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  constexpr std::string_view kBegin = "```sh\n";
  const std::size_t begin = text.find(kBegin);
  if (begin == std::string::npos) return "exit 9";
  const std::size_t at = begin + kBegin.size();
  return text.substr(at, text.find("```\n", at) - at);
}

// The whole of it: simulated packets, and the real program over real sockets on the same links.
TEST_F(WanOnHosts, ARunOverItEndsInTheSimulationsWorld) {
  Write("go.sh", ReadmesScript());
  std::filesystem::copy_file(folder / "s.yaml", folder / "S.yaml");
  const auto world = [](const std::string& text) {
    const std::size_t at = text.find("world   ");
    return at == std::string::npos ? "no world in: " + text : text.substr(at + 8, 32);
  };
  const Outcome simulated = Run("s.yaml --output sim.h5 --set network.fidelity=packet");
  ASSERT_EQ(simulated.code, 0) << simulated.err;
  const Outcome keys = Run("keys keys --host 10.77.0.5 --nodes 4");
  ASSERT_EQ(keys.code, 0) << keys.err;
  const std::string bin = std::filesystem::path(SPES_PROGRAM).parent_path().string();
  const Outcome real = Wan("--halt-on-failure -- sh go.sh", "PATH=" + bin + ":$PATH");
  ASSERT_EQ(real.code, 0) << real.out << real.err;
  EXPECT_EQ(world(real.out), world(simulated.out));
}

TEST_F(WanTest, RefusesWhatCannotBe) {
  for (const auto& [arguments, complaint] : std::vector<std::pair<std::string, std::string>>{
           {"-- no-such-program", "no-such-program: there is no such program"},
           {"--only node4 -- true", "--only node4: there is no such host"},
           {"--only node1", "--only: without a command"},
           {"--only node0,node1,node0 -- true", "--only: node0 is named twice"},
           {"--halt-on-failure", "--halt-on-failure: without a command"},
           {"--set 'network.background=[{size: 1 MB}]'", "network.background: "},
           {"--set sync.allocation=all --set 'nodes.groups=[{count: 200}]'",
            "wan has room for 127"},
           {"--set nodes.count=-1", "nodes.count"}}) {
    if (geteuid() != 0 && arguments == "-- no-such-program") continue;
    const Outcome outcome = Wan(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments << ": " << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(complaint));
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  }
  EXPECT_EQ(Run("wan").code, 2);
  EXPECT_THAT(Run("wan s.yaml --prefix 'a b'").err, HasSubstr("the prefix 'a b'"));
}

#else

TEST_F(ProgramTest, WanNeedsNs3) {
  Write("s.yaml", TinyScenario());
  const Outcome outcome = Run("wan s.yaml");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("wan: needs ns-3"));
}

#endif

}  // namespace
}  // namespace spes::end_to_end
