// Runs that are taken up again, and nodes that are not let in again.
#include <gmock/gmock.h>

#include <csignal>
#include <regex>
#include <string>
#include <vector>

#include "tests/end_to_end/real_run.h"

namespace spes::end_to_end {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ResumeTest : public RealRunTest {
 protected:
  // The newest file of a folder of states.
  std::filesystem::path Newest(const std::string& states) const {
    std::filesystem::path newest;
    for (const auto& file : std::filesystem::directory_iterator(folder / states)) {
      const bool state = file.path().filename().string().starts_with("round-");
      if (state && file.path() > newest) newest = file.path();
    }
    return newest;
  }
};

TEST_F(ResumeTest, ASimulationWhoseStepsAreMeasured) {
  const std::string run =
      "tiny.yaml --set nodes.compute.kind=measured --set training.steps=2000 --output a.h5 "
      "--set output.journal=j ";
  Background begun(folder.string(), run, "a.txt");
  while (!std::filesystem::exists(folder / "j/coordinator/round-00000005.safetensors")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  begun.Signal(SIGKILL);
  ASSERT_EQ(begun.Wait(), -SIGKILL);
  // A node whose newest state is damaged goes back one, and says so.
  std::ofstream(Newest("j/node-0"), std::ios::app) << "x";
  const Outcome resumed = Run(run + "--resume --log-file events --log-format json");
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(Read("events"), HasSubstr("\"event\":\"damaged\""));
  EXPECT_THAT(Read("events"), HasSubstr("node-0/round-"));
  std::smatch after, first;
  ASSERT_TRUE(std::regex_search(resumed.err, after, std::regex("going on after round (\\d+)")));
  ASSERT_TRUE(std::regex_search(resumed.err, first, std::regex("round +(\\d+)/500 ")));
  EXPECT_EQ(std::stoi(first[1]), std::stoi(after[1]) + 1) << resumed.err;
}

// Nodes may have kept what, by the run's clock, they had not trained yet when it was interrupted.
TEST_F(ResumeTest, ARoundTakesItsTimeAgain) {
  const std::string run = "tiny.yaml --quiet --output a.h5 --set output.journal=j ";
  ASSERT_EQ(Run(run).code, 0);
  const analysis::RunLog whole = analysis::ReadRunLog(Path("a.h5"));
  const analysis::RoundRecord last = whole.rounds.back();
  // As if the journal had not come that far.
  std::filesystem::remove(Newest("j/coordinator"));
  ASSERT_EQ(Run(run + "--resume").code, 0);
  const analysis::RunLog part =
      analysis::ReadRunLog(Path("a.from-" + std::to_string(last.round - 1) + ".h5"));
  EXPECT_EQ(part.world_hash, whole.world_hash);
  ASSERT_EQ(part.rounds.size(), 1u);
  EXPECT_NEAR(part.rounds[0].end_s - part.rounds[0].start_s, last.end_s - last.start_s, 0.1);
  for (const analysis::StepRecord& step : part.steps) {
    EXPECT_GT(step.virtual_s, part.rounds[0].start_s);
    EXPECT_LT(step.virtual_s, part.rounds[0].end_s);
  }
}

TEST_F(ResumeTest, ANodeOfAnotherRunIsItsUsersMistake) {
  ASSERT_EQ(Run("tiny.yaml --transport tcp --quiet --output a.h5").code, 0);
  for (const auto& [options, said] : std::vector<std::pair<std::string, std::string>>{
           {"--set training.lr=0.1", "of another scenario"},
           {"", "the coordinator refuses node 0: "}}) {
    const auto other = Start("--serve 127.0.0.1:0 --output b.h5 " + options, "b.txt");
    const Outcome node = Run("tiny.yaml --node 0 --set output.journal=a.journal --join " +
                             AddressFrom("b.txt") + " " + options);
    EXPECT_EQ(node.code, 2) << node.err;
    EXPECT_THAT(node.err, HasSubstr(said));
    other->Signal(SIGKILL);
    other->Wait();
    std::filesystem::remove_all(folder / "b.journal");
    std::filesystem::remove(folder / "b.txt");
  }
}

// Children of a process that are node 0 of its run.
std::vector<pid_t> NodesZero(pid_t parent) {
  const std::string of = "/proc/" + std::to_string(parent);
  std::ifstream children(of + "/task/" + std::to_string(parent) + "/children");
  std::vector<pid_t> nodes;
  for (pid_t child; children >> child;) {
    std::ifstream in("/proc/" + std::to_string(child) + "/cmdline", std::ios::binary);
    const std::string words{std::istreambuf_iterator<char>(in), {}};
    if (words.ends_with(std::string("--node\0"
                                    "0\0",
                                    9)))
      nodes.push_back(child);
  }
  return nodes;
}

TEST_F(ResumeTest, ANodeThatIsAlwaysKilledEndsTheRun) {
  const auto run = Start("--transport tcp --set training.steps=100000 --output a.h5", "a.txt");
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  std::optional<int> code;
  for (; !code && std::chrono::steady_clock::now() < end; code = run->Wait({})) {
    for (const pid_t node : NodesZero(run->pid())) {
      std::error_code gone;
      for (const auto& file :
           std::filesystem::directory_iterator("/proc/" + std::to_string(node) + "/fd", gone)) {
        const std::string open = std::filesystem::read_symlink(file.path(), gone).string();
        EXPECT_THAT(open, Not(HasSubstr(".h5"))) << "the coordinator's log";
      }
      kill(node, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(code, 3);
  EXPECT_THAT(Read("a.txt"),
              HasSubstr("spes-sim: node 0 was ended by signal 9 5 times in one round\n"));
  EXPECT_EQ(analysis::ReadRunLogHead(Path("a.h5")).status, "failed");
}

}  // namespace
}  // namespace spes::end_to_end
