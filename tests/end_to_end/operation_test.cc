// Runs that are watched, and ended in good order.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <csignal>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <vector>

#include "tests/end_to_end/real_run.h"
#include "tests/trainer/runtime/tcp/metrics_check.h"

namespace spes::end_to_end {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kTerminated = 128 + SIGTERM;

std::vector<std::string> LinesOf(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The body of what an address of this machine, "127.0.0.1:PORT", answers.
std::string Get(const std::string& address, const std::string& path) {
  const int s = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
  std::string answer;
  if (connect(s, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0) {
    const std::string ask = "GET " + path + " HTTP/1.0\r\n\r\n";
    if (send(s, ask.data(), ask.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(ask.size())) {
      char buffer[4096];
      for (ssize_t n; (n = recv(s, buffer, sizeof buffer, 0)) > 0;) {
        answer.append(buffer, static_cast<std::size_t>(n));
      }
    }
  }
  close(s);
  const std::size_t body = answer.find("\r\n\r\n");
  return body == std::string::npos ? "" : answer.substr(body + 4);
}

class OperationTest : public RealRunTest {
 protected:
  // Every line is an event.
  std::vector<nlohmann::json> Events(const std::string& file) const {
    static const std::regex time(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)");
    std::vector<nlohmann::json> events;
    for (const std::string& line : LinesOf(Read(file))) {
      const auto json = nlohmann::json::parse(line, nullptr, false);
      if (!json.is_object() || !std::regex_match(json.value("time", ""), time) ||
          !json.contains("level") || !json.contains("node") || !json.contains("round") ||
          !json.contains("event") || !json.contains("detail")) {
        ADD_FAILURE() << "no event: " << line;
        continue;
      }
      events.push_back(json);
    }
    return events;
  }
  std::map<std::string, int> Kinds(const std::string& file) const {
    std::map<std::string, int> kinds;
    for (const auto& event : Events(file)) ++kinds[event["event"].get<std::string>()];
    return kinds;
  }
  // Until the file has an event of the kind; false when that does not happen.
  bool UntilEvent(const std::string& file, const std::string& kind, int count = 1) const {
    for (int i = 0; i < 6000; ++i) {
      const std::string text = Read(file), words = "\"event\":\"" + kind + "\"";
      int found = 0;
      for (std::size_t at = 0; (at = text.find(words, at)) != std::string::npos; ++at) ++found;
      if (found >= count) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  // The last round that the log of a part has, and that the journal has.
  int RoundOfLog(const std::string& log) const {
    const auto rounds = analysis::ReadRunLog(Path(log)).rounds;
    return rounds.empty() ? 0 : rounds.back().round;
  }
  int RoundOfJournal(const std::string& journal) const {
    int last = -1;
    for (const auto& file : std::filesystem::directory_iterator(folder / journal / "coordinator")) {
      const std::string name = file.path().filename().string();
      if (name.starts_with("round-")) last = std::max(last, std::stoi(name.substr(6)));
    }
    return last;
  }
  std::string LastPart(const std::string& stem) const {
    std::string last = stem + ".h5";
    int from = -1;
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      const std::string name = file.path().filename().string(), start = stem + ".from-";
      if (!name.starts_with(start) || !name.ends_with(".h5")) continue;
      const int round = std::stoi(name.substr(start.size()));
      if (round > from) {
        from = round;
        last = name;
      }
    }
    return last;
  }
};

const char* const kJson = " --log-format json --log-file ";

TEST_F(OperationTest, EventsAreLinesOfTheirOwn) {
  ASSERT_EQ(
      Run("tiny.yaml --transport tcp --quiet --output a.h5" + std::string(kJson) + "a.log").code,
      0);
  auto kinds = Kinds("a.log");
  EXPECT_EQ(kinds["start"], 1);
  EXPECT_EQ(kinds["connected"], 4);
  EXPECT_EQ(kinds["join"], 4);
  EXPECT_EQ(kinds["round"], 2);
  EXPECT_EQ(kinds["evaluation"], 3);
  EXPECT_EQ(kinds["end"], 1);
  std::set<int> joined;
  for (const auto& event : Events("a.log")) {
    if (event["event"] == "join") joined.insert(event["node"].get<int>());
    EXPECT_LE(event["round"], 2);
    EXPECT_EQ(event["level"], "info") << event;
    EXPECT_TRUE(event.contains("run_s")) << event;
  }
  EXPECT_EQ(joined, (std::set<int>{0, 1, 2, 3}));
  EXPECT_THAT(Events("a.log").back()["detail"].get<std::string>(), HasSubstr("complete, world "));

  // Simulated, to standard error, where there is nothing else then; and as text.
  const Outcome json = Run("tiny.yaml --output b.h5 --log-format json");
  EXPECT_EQ(json.code, 0);
  EXPECT_THAT(json.out, HasSubstr("complete"));
  auto simulated = Kinds("err.txt");
  EXPECT_EQ(simulated["join"], 4);
  EXPECT_EQ(simulated["round"], 2);
  const std::size_t lines = Events("err.txt").size();
  ASSERT_EQ(Run("tiny.yaml --output c.h5 --log-file c.log").code, 0);
  static const std::regex line(
      R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (info|warning|error) (coordinator|node \d) round \d [a-z ]+(: .*)?)");
  EXPECT_EQ(LinesOf(Read("c.log")).size(), lines);
  for (const std::string& said : LinesOf(Read("c.log")))
    EXPECT_TRUE(std::regex_match(said, line)) << said;

  // A second run adds to the file; a failure is the last event.
  ASSERT_EQ(Run("tiny.yaml --output b.h5 --log-file c.log --set transport.status=nobody").code, 2);
  EXPECT_THAT(Read("c.log"),
              HasSubstr("error coordinator round 1 failed: transport.status: \"nobody\""));
  EXPECT_EQ(Run("tiny.yaml --log-file x.log --log-format xml").code, 2);
  const Outcome folder_taken = Run("tiny.yaml --log-file .");
  EXPECT_EQ(folder_taken.code, 2);
  EXPECT_THAT(folder_taken.err, HasSubstr("--log-file .: cannot be written"));
}

TEST_F(OperationTest, AFailureIsAnEventToo) {
  for (const auto& [arguments, code] : std::map<std::string, int>{
           {"absent.yaml", 2},
           {"tiny.yaml --output absent/run.h5", 2},
           {"tiny.yaml --join 127.0.0.1:1 --node 9", 2},
           {"tiny.yaml --output a.h5 --set training.lr=1e38 --set training.warmup_steps=0", 3}}) {
    EXPECT_EQ(Run(arguments + " --log-format json").code, code) << arguments;
    const auto events = Events("err.txt");
    ASSERT_FALSE(events.empty()) << arguments;
    EXPECT_EQ(events.back()["event"], "failed") << arguments;
    EXPECT_EQ(Kinds("err.txt")["failed"], 1) << arguments;
  }
}

TEST_F(OperationTest, IsWatchedWhileItRunsAndTellsNoSecrets) {
  ASSERT_EQ(Run("keys k --host 127.0.0.1").code, 0);
  const std::string options =
      " --set transport.tls=on --set transport.keys=k --set training.steps=2000 --set "
      "transport.beat_every=200ms" +
      std::string(kJson);
  const auto coordinator =
      Start("--serve 127.0.0.1:0 --node 3 --set transport.status=127.0.0.1:0 --output c.h5" +
                options + "c.log",
            "c.txt");
  const std::string address = AddressFrom("c.txt");
  std::string status = Said("c.txt", "status page at http://");
  status.pop_back();  // the path
  const auto metrics = [&] {
    const auto checked = trainer::CheckMetrics(Get(status, "/metrics"));
    EXPECT_THAT(checked.offences, ElementsAre());
    return checked.samples;
  };
  auto before = metrics();
  EXPECT_EQ(before["spes_run_state{state=\"waiting\"}"], 1);
  EXPECT_EQ(before["spes_node_connected{node=\"0\"}"], 0);
  EXPECT_FALSE(before.contains("spes_node_connected{node=\"3\"}")) << "it is inside";
  std::vector<std::unique_ptr<Background>> nodes;
  for (const char* node : {"0", "1", "2"}) {
    nodes.push_back(Start(
        "--join " + address + " --node " + node + " --output c.h5" + options + "n" + node + ".log",
        "n.txt"));
  }
  ASSERT_TRUE(UntilEvent("c.log", "round", 2));
  std::map<std::string, double> during;
  for (int i = 0; i < 500 && (during["spes_round"] < 2 ||
                              !during.contains("spes_node_rtt_seconds{node=\"2\"}"));
       ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    during = metrics();
  }
  EXPECT_GE(during["spes_round"], 2);
  EXPECT_EQ(during["spes_rounds_planned"], 500);
  EXPECT_EQ(during["spes_step"], 4 * during["spes_round"]);
  EXPECT_EQ(during["spes_node_connected{node=\"0\"}"], 1);
  EXPECT_GT(during["spes_node_received_bytes_total{node=\"1\"}"], 10000);
  EXPECT_GT(during["spes_node_rtt_seconds{node=\"2\"}"], 0);
  EXPECT_GE(during["spes_node_last_round{node=\"3\"}"], 1);
  EXPECT_GT(during["process_resident_memory_bytes"], 1 << 20);
  EXPECT_THAT(Get(status, "/"), HasSubstr("<h1>tiny: "));
  EXPECT_EQ(nlohmann::json::parse(Get(status, "/status.json"))["nodes"].size(), 4U);
  EXPECT_EQ(Get(status, "/healthz"), "ok\n");
  const Outcome taken = Run("tiny.yaml --output d.h5 --set transport.status=" + status);
  EXPECT_EQ(taken.code, 2);
  EXPECT_THAT(taken.err, HasSubstr("transport.status: " + status + " is taken by another program"));

  // A node that goes says so, and the coordinator's events say that it did.
  nodes[1]->Signal(SIGTERM);
  EXPECT_EQ(nodes[1]->Wait(), kTerminated);
  ASSERT_TRUE(UntilEvent("c.log", "missing"));
  EXPECT_THAT(Read("c.log"),
              HasSubstr("\"event\":\"missing\",\"detail\":\"left: stopped by a signal\""));
  auto left = metrics();
  for (int i = 0; i < 500 && left["spes_node_state{node=\"1\",state=\"missing\"}"] != 1; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    left = metrics();
  }
  EXPECT_EQ(left["spes_node_state{node=\"1\",state=\"missing\"}"], 1);
  EXPECT_EQ(left["spes_node_connected{node=\"1\"}"], 0);

  coordinator->Signal(SIGINT);
  EXPECT_EQ(coordinator->Wait(), 128 + SIGINT);
  EXPECT_EQ(analysis::ReadRunLogHead(Path("c.h5")).status, "interrupted");
  for (const std::size_t node : {0, 2}) {
    nodes[node]->Signal(SIGTERM);
    EXPECT_EQ(nodes[node]->Wait(), kTerminated);
  }
  EXPECT_GE(Kinds("n0.log")["state"], 4);
  std::string token = Read("k/token");
  token.erase(token.find_last_not_of("\r\n") + 1);
  ASSERT_GE(token.size(), 16U);
  for (const char* file : {"c.log", "n0.log", "n1.log", "n2.log", "c.txt", "n.txt"}) {
    EXPECT_THAT(Read(file), Not(HasSubstr(token))) << file;
  }
  EXPECT_THAT(Events("n1.log").back()["detail"].get<std::string>(),
              HasSubstr("stopped by a signal"));
}

TEST_F(OperationTest, ASimulationIsWatchedToo) {
  const auto run = Start(
      "--set training.steps=100000 --set transport.status=127.0.0.1:0 --output s.h5", "s.txt");
  std::string status = Said("s.txt", "status page at http://");
  status.pop_back();
  const auto checked = trainer::CheckMetrics(Get(status, "/metrics"));
  EXPECT_THAT(checked.offences, ElementsAre());
  EXPECT_TRUE(checked.samples.contains("spes_round"));
  EXPECT_FALSE(checked.samples.contains("spes_node_connected{node=\"0\"}"));
  run->Signal(SIGTERM);
  EXPECT_EQ(run->Wait(), kTerminated);
}

// SIGTERM at the coordinator: before there are nodes, and while they train. The nodes wait
// meanwhile.
TEST_F(OperationTest, ACoordinatorThatIsToldToStopLosesNothing) {
  const std::string steps = " --set training.steps=80";
  const std::string hash = HashOf(steps, "sim.h5");
  std::string address = "127.0.0.1:0";
  const auto start = [&] {
    return Start("--serve " + address + " --output tcp.h5" + steps + kJson + "c.log", "c.txt");
  };
  auto coordinator = start();
  address = AddressFrom("c.txt");
  coordinator->Signal(SIGTERM);
  EXPECT_EQ(coordinator->Wait(), kTerminated);
  EXPECT_EQ(analysis::ReadRunLogHead(Path("tcp.h5")).status, "interrupted");

  std::vector<std::unique_ptr<Background>> nodes;
  for (int node = 0; node < 4; ++node) {
    nodes.push_back(
        Start("--join " + address + " --node " + std::to_string(node) + " --output tcp.h5" + steps,
              "n.txt"));
  }
  int stops = 0;
  while (stops < 3) {
    std::filesystem::remove(folder / "c.log");
    coordinator = start();
    if (!UntilEvent("c.log", "round", 1 + stops)) break;
    coordinator->Signal(SIGTERM);
    const auto code = coordinator->Wait();
    if (code == 0) break;  // all was over before
    EXPECT_EQ(code, kTerminated) << Read("c.txt");
    ++stops;
    const std::string part = LastPart("tcp");
    EXPECT_EQ(analysis::ReadRunLogHead(Path(part)).status, "interrupted");
    EXPECT_EQ(RoundOfLog(part), RoundOfJournal("tcp.journal")) << part;
    EXPECT_THAT(Events("c.log").back()["detail"].get<std::string>(), HasSubstr("interrupted"));
  }
  EXPECT_GE(stops, 2);
  coordinator = start();
  EXPECT_EQ(coordinator->Wait(), 0) << Read("c.txt");
  for (const auto& node : nodes) EXPECT_EQ(node->Wait(), 0) << Read("n.txt");
  EXPECT_EQ(analysis::ReadRunLogHead(Path(LastPart("tcp"))).world_hash, hash);
}

// A model that takes a while to reduce and to write down, so that SIGTERM comes in the middle.
TEST_F(OperationTest, ARoundThatIsBeingWrittenDownIsPublishedBeforeTheEnd) {
  const std::string options =
      "--serve 127.0.0.1:0 --node 0 --node 1 --node 2 --node 3 --set nodes.only_wait=true --set "
      "training.steps=400 --set nodes.compute.step_time=\"5 ms\" --set model.width=256 --set "
      "model.experts=8 --set model.expert_width=1024 --set output.eval_every=0 --set "
      "sync.merge.interval=0 --output big.h5";
  int in_the_middle = 0;
  for (int stop = 0; stop < 4; ++stop) {
    const auto run = Start(options, "c.txt");
    const int before = stop == 0 ? 1 : RoundOfJournal("big.journal") + 1;
    const auto written = folder / "big.journal/coordinator";
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    bool seen = false;
    while (!seen && std::chrono::steady_clock::now() < end) {
      std::error_code ignored;
      for (const auto& file : std::filesystem::directory_iterator(written, ignored)) {
        const std::string name = file.path().filename().string();
        seen = seen || (name.ends_with(".tmp") && name.starts_with("round-") &&
                        std::stoi(name.substr(6)) > before);
      }
    }
    ASSERT_TRUE(seen) << Read("c.txt");
    run->Signal(SIGTERM);
    EXPECT_EQ(run->Wait(), kTerminated) << Read("c.txt");
    const std::string part = LastPart("big");
    EXPECT_EQ(RoundOfLog(part), RoundOfJournal("big.journal")) << part;
    in_the_middle += RoundOfLog(part) > before;
  }
  EXPECT_GT(in_the_middle, 0);
}

TEST_F(OperationTest, ANodeThatIsToldToStopComesBackWithWhatItHad) {
  const std::string steps = " --set training.steps=80";
  const std::string hash = HashOf(steps, "sim.h5");
  // Before there is a coordinator.
  auto alone =
      Start("--join 127.0.0.1:9 --node 0 --output tcp.h5" + steps + kJson + "alone.log", "n.txt");
  ASSERT_TRUE(UntilEvent("alone.log", "waiting"));
  alone->Signal(SIGTERM);
  EXPECT_EQ(alone->Wait(), kTerminated);

  const auto coordinator =
      Start("--serve 127.0.0.1:0 --output tcp.h5" + steps + kJson + "c.log", "c.txt");
  const std::string address = AddressFrom("c.txt");
  std::vector<std::unique_ptr<Background>> nodes;
  const auto start = [&](int node) {
    return Start("--join " + address + " --node " + std::to_string(node) + " --output tcp.h5" +
                     steps + kJson + "n.log",
                 "n.txt");
  };
  for (int node = 0; node < 4; ++node) nodes.push_back(start(node));
  int left = 0;
  for (const std::size_t node : {0, 1, 2}) {
    ASSERT_TRUE(UntilEvent("c.log", "round", 2 * static_cast<int>(node) + 1));
    nodes[node]->Signal(SIGTERM);
    const auto code = nodes[node]->Wait();
    if (code == 0) break;
    EXPECT_EQ(code, kTerminated) << Read("n.txt");
    ++left;
    nodes[node] = start(static_cast<int>(node));
  }
  EXPECT_GE(left, 1);
  EXPECT_EQ(coordinator->Wait(), 0) << Read("c.txt");
  for (const auto& node : nodes) EXPECT_EQ(node->Wait(), 0) << Read("n.txt");
  EXPECT_EQ(analysis::ReadRunLogHead(Path("tcp.h5")).world_hash, hash);
  EXPECT_THAT(Read("c.log"), HasSubstr("with what it had after round"));
}

TEST_F(OperationTest, ARunOfThisMachineTendsAndEndsItsNodes) {
  const std::string steps = " --set training.steps=80";
  const std::string hash = HashOf(steps, "sim.h5");
  const auto nodes = [this] {  // their processes
    std::vector<pid_t> found;
    for (const auto& process : std::filesystem::directory_iterator("/proc")) {
      std::error_code gone;
      if (std::filesystem::read_symlink(process.path() / "cwd", gone) != folder) continue;
      std::ifstream file(process.path() / "cmdline");
      const std::string words(std::istreambuf_iterator<char>(file), {});
      if (words.find("--join") != std::string::npos) {
        found.push_back(std::stoi(process.path().filename().string()));
      }
    }
    return found;
  };
  const auto run = Start("--transport tcp --output tcp.h5" + steps + kJson + "c.log", "c.txt");
  ASSERT_TRUE(UntilEvent("c.log", "round", 2));
  const std::vector<pid_t> victims = nodes();
  ASSERT_FALSE(victims.empty());
  kill(victims[0], SIGTERM);  // it leaves, and is started again
  ASSERT_TRUE(UntilEvent("c.log", "join", 5)) << Read("c.txt");
  ASSERT_TRUE(UntilEvent("c.log", "round", 5));
  run->Signal(SIGTERM);
  const auto code = run->Wait();
  EXPECT_TRUE(nodes().empty());
  if (code == 0) return;  // all was over
  EXPECT_EQ(code, kTerminated) << Read("c.txt");
  EXPECT_EQ(RoundOfLog("tcp.h5"), RoundOfJournal("tcp.journal"));
  ASSERT_EQ(Run("tiny.yaml --transport tcp --output tcp.h5" + steps).code, 0);
  EXPECT_EQ(analysis::ReadRunLogHead(Path(LastPart("tcp"))).world_hash, hash);
}

}  // namespace
}  // namespace spes::end_to_end
