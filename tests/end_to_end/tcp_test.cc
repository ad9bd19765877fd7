// Runs over real connections: the same world as in simulation, whoever is killed.
#include <gmock/gmock.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <vector>

#include "analysis/hdf5/log_reader.h"
#include "tests/end_to_end/real_run.h"

namespace spes::end_to_end {
namespace {

using ::testing::HasSubstr;

class TcpTest : public RealRunTest {};

TEST_F(TcpTest, TheWorldIsThatOfTheSimulation) {
  const std::string coded =
      " --set sync.codec.up.kind=int8 --set sync.codec.up.differences=true --set "
      "sync.codec.up.error_feedback=true --set sync.codec.down.kind=int8 --set "
      "sync.codec.down.differences=true";
  for (const std::string& options :
       {std::string(), coded,
        std::string(" --set sync.method=data_parallel --set sync.allocation=all --set sync.every=1 "
                    "--set sync.merge.interval=0"),
        std::string(" --set sync.fragments=2 --set sync.overlap=1 --set sync.merge.interval=0 "
                    "--set network.tcp.streams=3")}) {
    const std::string hash = HashOf("--set network.fidelity=ideal" + options, "sim.h5");
#ifdef SPES_NS3
    EXPECT_EQ(HashOf("--set network.fidelity=packet" + options, "packet.h5"), hash);
#endif
    EXPECT_EQ(HashOf("--transport tcp" + options, "tcp.h5"), hash) << options;
    const analysis::RunLog log = analysis::ReadRunLog(Path("tcp.h5"));
    EXPECT_EQ(log.status, "complete");
    EXPECT_GE(log.flows.size(), 8U) << "offers and updates";
    std::filesystem::remove_all(folder / "tcp.journal");
  }
}

TEST_F(TcpTest, ACoordinatorThatTrainsAndNodesThatJoinWithKeys) {
  const std::string hash = HashOf("", "sim.h5");
  ASSERT_EQ(Run("keys k --host 127.0.0.1 --nodes 4").code, 0);
  for (const bool mutual : {false, true}) {
    const std::string keys = std::string(" --set transport.tls=on --set transport.keys=k") +
                             (mutual ? " --set transport.mutual=true" : "");
    const std::string log = mutual ? "mutual.h5" : "token.h5";
    const std::string text = log + ".txt";
    const auto coordinator =
        Start("--transport tcp --serve 127.0.0.1:0 --node 1 --output " + log + keys, text);
    const std::string address = AddressFrom(text);
    std::vector<std::unique_ptr<Background>> nodes;
    for (const char* node : {"0", "2", "3"}) {
      // With a token the coordinator may choose which node this is.
      nodes.push_back(Start("--join " + address + keys + " --output n" + node + ".h5" +
                                (mutual ? std::string(" --node ") + node : ""),
                            text + node));
    }
    EXPECT_EQ(coordinator->Wait(), 0) << Read(text);
    for (const auto& node : nodes) EXPECT_EQ(node->Wait(), 0);
    EXPECT_EQ(analysis::ReadRunLogHead(Path(log)).world_hash, hash);
    for (const char* name : {"n0.journal", "n2.journal", "n3.journal"}) {
      std::filesystem::remove_all(folder / name);
    }
  }
}

// SPES_KILLS says how often; 6 by default.
TEST_F(TcpTest, WhoeverIsKilledTheRunEndsInTheSameWorld) {
  const char* wanted = std::getenv("SPES_KILLS");
  const int kills = wanted == nullptr ? 6 : std::atoi(wanted);
  const std::string steps = " --set training.steps=" + std::to_string(96 + 2 * kills);
  const std::string options = steps +
                              " --set transport.give_up_after=2s --set transport.dead_after=1s "
                              "--set transport.beat_every=200ms --output tcp.h5 ";
  const std::string hash = HashOf(steps, "sim.h5");
  std::mt19937 random(7);
  std::string address = "127.0.0.1:0";
  constexpr std::size_t kCoordinator = 4;
  std::vector<std::unique_ptr<Background>> processes(5);
  const auto start = [&](std::size_t i) {
    processes[i] =
        i == kCoordinator
            ? Start("--transport tcp --serve " + address + options, "c.txt")
            : Start("--join " + address + options + "--node " + std::to_string(i), "n.txt");
  };
  // Returns at once when this process writes a state down, or after a while.
  const auto until_it_writes = [&](std::size_t i) {
    const std::filesystem::path states =
        folder / "tcp.journal" /
        (i == kCoordinator ? std::string("coordinator") : "node-" + std::to_string(i));
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (std::chrono::steady_clock::now() < end) {
      std::error_code ignored;
      for (const auto& file : std::filesystem::directory_iterator(states, ignored)) {
        if (file.path().extension() == ".tmp") return true;
      }
    }
    return false;
  };
  start(kCoordinator);
  address = AddressFrom("c.txt");
  for (std::size_t i = 0; i < kCoordinator; ++i) start(i);
  int killed = 0, writing = 0;
  while (killed < kills) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50 + random() % 500));
    const std::size_t victim = random() % 5;
    if (killed % 2 == 1) writing += until_it_writes(victim);
    processes[victim]->Signal(SIGKILL);
    if (processes[victim]->Wait() == 0) break;  // all was over
    ++killed;
    start(victim);
  }
  std::cout << killed << " killed, " << writing << " of them while they wrote a state\n";
  EXPECT_GT(killed, kills / 3);
  EXPECT_EQ(processes[kCoordinator]->Wait(std::chrono::minutes(10)), 0) << Read("c.txt");
  for (std::size_t i = 0; i < kCoordinator; ++i)
    EXPECT_EQ(processes[i]->Wait(), 0) << Read("n.txt");
  std::string last;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const std::string name = file.path().filename().string();
    if (!name.starts_with("tcp.") || file.path().extension() != ".h5") continue;
    const analysis::RunLog head = analysis::ReadRunLogHead(file.path().string());
    if (head.status == "complete") last = head.world_hash;
  }
  EXPECT_EQ(last, hash);
}

TEST_F(TcpTest, ASimulationThatWasKilledIsResumed) {
  const std::string options = "--set training.steps=400 --set output.journal=j ";
  const std::string hash = HashOf("--set training.steps=400", "whole.h5");
  const auto run = Start(options + "--output a.h5", "a.txt");
  while (!std::filesystem::exists(folder / "j/coordinator/round-00000005.safetensors")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  run->Signal(SIGKILL);
  ASSERT_EQ(run->Wait(), -SIGKILL);
  const Outcome refused = Run("tiny.yaml " + options);
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("; --resume goes on with it, or remove it"));
  const Outcome other = Run("tiny.yaml " + options + "--set training.lr=0.1 --resume");
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("holds a run of another scenario"));
  const Outcome resumed = Run("tiny.yaml " + options + "--resume --output a.h5");
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("going on after round"));
  EXPECT_THAT(resumed.out, HasSubstr(hash));
}

TEST_F(TcpTest, MistakesAreNamed) {
  const auto coordinator = Start("--transport tcp --serve 127.0.0.1:0 --output c.h5", "c.txt");
  const std::string address = AddressFrom("c.txt");
  const auto expect = [&](const std::string& arguments, const std::string& said) {
    const Outcome outcome = Run("tiny.yaml " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(said));
  };
  expect("--transport tcp --serve " + address + " --output d.h5", "is taken");
  expect("--join " + address + " --output n.h5 --set sync.every=2",
         "sync.every is '4' at the coordinator and '2' at the node");
  expect("--join " + address + " --output n.h5 --node 9", "has nodes 0 to 3");
  expect("--join 127.0.0.1 --output n.h5", "HOST:PORT");
  expect("--transport tcp --serve 0.0.0.0:0 --output d.h5", "spes-sim keys");
  expect("--transport tcp --serve 0.0.0.0:0 --output d.h5 --set transport.tls=off", "TLS");
  expect("--serve " + address + " --join " + address, "a process is one of both");
  expect("--transport sim --node 1", "--transport tcp");
}

}  // namespace
}  // namespace spes::end_to_end
