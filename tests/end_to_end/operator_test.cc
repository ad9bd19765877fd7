// What those see who start, stop and start again the processes of a real run by hand.
#include <gmock/gmock.h>

#include <csignal>
#include <memory>
#include <vector>

#include "tests/end_to_end/real_run.h"

namespace spes::end_to_end {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class OperatorTest : public RealRunTest {
 protected:
  using Processes = std::vector<std::unique_ptr<Background>>;

  bool There(const std::string& file) const { return std::filesystem::exists(folder / file); }
  // Nodes without a number, each in a folder of its own: "0" first, then the others.
  Processes Nodes(const std::string& address, const std::string& options,
                  const std::vector<std::string>& folders) const {
    Processes nodes;
    for (const std::string& name : folders) {
      nodes.push_back(
          Start("--join " + address + options + " --output n" + name + ".h5", "n" + name + ".txt"));
    }
    return nodes;
  }
  void UntilThere(const std::string& file) const {
    for (int i = 0; i < 6000 && !There(file); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ASSERT_TRUE(There(file)) << file;
  }
};

TEST_F(OperatorTest, NodesWithoutANumberComeBackAsWhoTheyWere) {
  const std::string options = " --set training.steps=160 --set output.journal_last=1000";
  const std::string hash = HashOf("--set training.steps=160", "sim.h5");
  auto coordinator = Start("--transport tcp --serve 127.0.0.1:0 --output c.h5" + options, "c.txt");
  std::string address = AddressFrom("c.txt");
  auto nodes = Nodes(address, options, {"a", "b", "c", "d"});
  UntilThere("c.journal/coordinator/round-00000003.safetensors");
  for (const auto& node : nodes) node->Signal(SIGKILL);
  coordinator->Signal(SIGKILL);
  coordinator->Wait();
  for (const auto& node : nodes) node->Wait();
  coordinator =
      Start("--transport tcp --serve " + address + " --output c.h5" + options, "again.txt");
  Said("again.txt", "listening on ");
  nodes = Nodes(address, options, {"d", "c", "b", "a"});
  EXPECT_EQ(coordinator->Wait(), 0) << Read("again.txt");
  for (const auto& node : nodes) EXPECT_EQ(node->Wait(), 0);
  for (const char* text : {"na.txt", "nb.txt", "nc.txt", "nd.txt"}) {
    EXPECT_THAT(Read(text), AllOf(HasSubstr("the run is over"), Not(HasSubstr("begins without"))));
  }
  EXPECT_THAT(Read("again.txt"), HasSubstr(hash));
}

TEST_F(OperatorTest, ANodeOfAnotherNumberThanItsFolderIsSaysSo) {
  std::filesystem::create_directories(folder / "n.journal/node-7");
  Write("n.journal/node-7/round-00000001.state", "of an earlier run");
  const auto coordinator = Start("--serve 127.0.0.1:0 --output c.h5", "c.txt");
  const auto node = Start("--join " + AddressFrom("c.txt") + " --output n.h5", "n.txt");
  EXPECT_THAT(Said("n.txt", "spes-sim: warning: "),
              HasSubstr("n.journal holds what node 7 has kept, and this is node 0"));
  // Nodes of one machine may have one folder.
  const auto named = Start("--join " + AddressFrom("c.txt") + " --node 1 --output n.h5", "m.txt");
  Said("m.txt", "node 1: round 0, joining");
  EXPECT_THAT(Read("m.txt"), Not(HasSubstr("warning")));
}

TEST_F(OperatorTest, ANodeThatHasDialledLongEnoughEnds) {
  const auto node = Start("--join 127.0.0.1:1 --set transport.dial_for=300ms", "n.txt");
  EXPECT_EQ(node->Wait(), 3);
  EXPECT_THAT(Read("n.txt"), HasSubstr("not reached for 0.3 s"));
}

TEST_F(OperatorTest, ANodeThatCannotGoOnTellsItsCoordinatorWhy) {
  std::filesystem::create_directories(folder / "n.journal");
  Write("n.journal/node-0", "no folder");
  const auto coordinator = Start("--serve 127.0.0.1:0 --output c.h5", "c.txt");
  const auto node = Start("--join " + AddressFrom("c.txt") + " --node 0 --output n.h5", "n.txt");
  EXPECT_EQ(node->Wait(), 2) << Read("n.txt");
  EXPECT_THAT(Said("c.txt", "it has failed: "), HasSubstr("n.journal/node-0"));
}

TEST_F(OperatorTest, TheCoordinatorSaysWhoIsAwaitedAndWhoComes) {
  const auto coordinator = Start("--serve 127.0.0.1:0 --output c.h5", "c.txt");
  const std::string address = AddressFrom("c.txt");
  EXPECT_THAT(Read("c.txt"), HasSubstr("a new run; journal in /"));
  Said("c.txt", "waiting for nodes 0, 1, 2, 3 (0 of 4 here)");
  const auto one = Start("--join " + address + " --node 1 --output n.h5", "n.txt");
  Said("c.txt", "node 1: join");
  Said("c.txt", "waiting for nodes 0, 2, 3 (1 of 4 here)");
  EXPECT_EQ(Run("tiny.yaml --join " + address + " --output x.h5 --set sync.every=2").code, 2);
  EXPECT_THAT(Said("c.txt", "warning: refused: "),
              HasSubstr("127.0.0.1: its scenario is not the coordinator's: sync.every is '4'"));
  one->Signal(SIGTERM);
  EXPECT_EQ(one->Wait(), 128 + SIGTERM);
  Said("c.txt", "warning: node 1: missing: left: stopped by a signal");
}

TEST_F(OperatorTest, ACoordinatorWithoutItsJournalIsNoticed) {
  auto coordinator =
      Start("--serve 127.0.0.1:0 --output c.h5 --set training.steps=100000", "c.txt");
  const std::string address = AddressFrom("c.txt");
  const std::string options = " --set training.steps=100000";
  Processes nodes;
  for (const char* node : {"0", "1", "2", "3"}) {
    nodes.push_back(Start("--join " + address + options + " --node " + node + " --output n.h5",
                          std::string("n") + node));
  }
  UntilThere("n.journal/node-0/round-00000003.state");
  coordinator->Signal(SIGKILL);
  coordinator->Wait();
  coordinator = Start("--serve " + address + " --output elsewhere.h5" + options, "d.txt");
  for (const auto& node : nodes) EXPECT_EQ(node->Wait(), 2);
  EXPECT_THAT(Read("n0"),
              AllOf(HasSubstr("the coordinator begins at round 0 of another run, this node holds "
                              "round "),
                    HasSubstr(" in n.journal/node-0: has the coordinator lost its journal"),
                    HasSubstr("To give this state up, remove n.journal/node-0\n")));
}

// The part of an earlier run that ended, whose journal is gone, lies beside the log.
TEST_F(OperatorTest, ALogOfAnEarlierRunDoesNotSayThatThisOneIsOver) {
  ASSERT_EQ(Run("tiny.yaml --transport tcp --output a.h5 --seed 9").code, 0);
  std::filesystem::rename(folder / "a.h5", folder / "a.from-1.h5");
  std::filesystem::remove_all(folder / "a.journal");
  ASSERT_EQ(Run("tiny.yaml --transport tcp --output a.h5").code, 0);
  std::filesystem::remove(folder / "a.h5");  // as if it had ended before its log did
  const Outcome again = Run("tiny.yaml --transport tcp --output a.h5");
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.err, Not(HasSubstr("this run is over")));
  EXPECT_TRUE(There("a.from-2.h5"));
}

TEST_F(OperatorTest, ARunThatIsOverSaysSoAndTellsItsNodes) {
  ASSERT_EQ(Run("tiny.yaml --transport tcp --output a.h5").code, 0);
  const Outcome again = Run("tiny.yaml --transport tcp --output a.h5");
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.err, AllOf(HasSubstr("this run is over (round 2 of 2)"),
                               HasSubstr("; remove a.journal to begin anew")));
  EXPECT_FALSE(There("a.from-2.h5"));

  const auto coordinator = Start("--serve 127.0.0.1:0 --output a.h5", "c.txt");
  const std::string address = AddressFrom("c.txt");
  auto nodes = Nodes(address, "", {"0", "1", "2", "3"});
  EXPECT_EQ(coordinator->Wait(), 0) << Read("c.txt");
  for (const auto& node : nodes) EXPECT_EQ(node->Wait(), 0);
  EXPECT_FALSE(There("a.from-2.h5"));
}

TEST_F(OperatorTest, EachSideNeedsItsOwnKeysAlone) {
  ASSERT_EQ(Run("keys k --host 127.0.0.1 --days 10").code, 0);
  for (const char* side : {"c", "n"}) std::filesystem::create_directory(folder / side);
  const auto give = [&](const char* side, const char* file) {
    std::filesystem::copy(folder / "k" / file, folder / side / file);
  };
  for (const char* file : {"coordinator.pem", "coordinator-key.pem", "token"}) give("c", file);
  for (const char* file : {"authority.pem", "token"}) give("n", file);
  const std::string keys = " --set transport.tls=on --set transport.keys=";
  const auto coordinator = Start("--serve 127.0.0.1:0 --output c.h5" + keys + "c", "c.txt");
  const std::string address = AddressFrom("c.txt");
  EXPECT_THAT(Said("c.txt", "warning: certificate: "),
              HasSubstr("the certificate \"spes-sim coordinator\" expires on 2"));
  const Outcome plain = Run("tiny.yaml --join " + address + " --output n.h5");
  EXPECT_EQ(plain.code, 2);
  EXPECT_THAT(plain.err, HasSubstr("the coordinator asks for TLS: --set transport.tls=on"));
  auto nodes = Nodes(address, keys + "n", {"0", "1", "2", "3"});
  EXPECT_EQ(coordinator->Wait(), 0) << Read("c.txt");
  for (const auto& node : nodes) EXPECT_EQ(node->Wait(), 0);
  EXPECT_THAT(Read("c.txt"), Not(HasSubstr("disconnected")));
}

TEST_F(OperatorTest, FoldersThatAreNotThereAreToBeCreatedAndNothingIsLeftBehind) {
  const std::string none = "there is no folder " + Path("none") + "; create it";
  for (const std::string arguments :
       {"tiny.yaml --output none/a.h5", "tiny.yaml --transport tcp --output none/a.h5",
        "tiny.yaml --join 127.0.0.1:1 --output none/a.h5", "tiny.yaml --log-file none/a.log",
        "keys none/k --host localhost"}) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(none)) << arguments;
  }
  EXPECT_FALSE(There("none"));
  std::filesystem::create_directory(folder / "rw");
  for (const char* kind : {"--transport tcp", "--join 127.0.0.1:1"}) {
    const Outcome outcome = Run(std::string("tiny.yaml --output rw/ ") + kind);
    EXPECT_EQ(outcome.code, 2) << kind;
    EXPECT_THAT(outcome.err, HasSubstr("rw/: cannot be written; name a file in a folder"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder / "rw"));
}

TEST_F(OperatorTest, AJournalThatIsInUseIsAMistake) {
  const auto coordinator = Start("--serve 127.0.0.1:0 --output c.h5", "c.txt");
  AddressFrom("c.txt");
  const Outcome outcome = Run("tiny.yaml --serve 127.0.0.1:0 --output c.h5");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("c.journal/coordinator: is in use by process "));
}

}  // namespace
}  // namespace spes::end_to_end
