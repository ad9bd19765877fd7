// The units for systemd that come with the program.
#include <gmock/gmock.h>

#include <iomanip>
#include <map>
#include <regex>
#include <sstream>
#include <vector>

#include "tests/end_to_end/real_run.h"

namespace spes::end_to_end {
namespace {

using ::testing::HasSubstr;

const std::string kFolder = SPES_SOURCE_DIR "/scenarios/deploy/";

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What a unit says, as far as the program's start depends on it.
struct Unit {
  std::string start;                                 // ExecStart, in one line
  std::map<std::string, std::string> environment;    // Environment
  std::multimap<std::string, std::string> settings;  // everything
};

Unit ReadUnit(const std::string& name) {
  Unit unit;
  const std::string text = std::regex_replace(TextOf(kFolder + name), std::regex("\\\\\n *"), "");
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const std::size_t equals = line.find('=');
    if (line.empty() || line[0] == '#' || line[0] == '[' || equals == std::string::npos) continue;
    unit.settings.emplace(line.substr(0, equals), line.substr(equals + 1));
    if (line.starts_with("ExecStart=")) unit.start = line.substr(equals + 1);
    if (!line.starts_with("Environment=")) continue;
    std::istringstream words(line.substr(equals + 1));
    for (std::string word; words >> std::quoted(word);) {
      unit.environment[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
    }
  }
  return unit;
}

class DeployTest : public RealRunTest {
 protected:
  // The words after the program's name, as systemd would pass them on.
  std::string Arguments(const std::string& name, const std::map<std::string, std::string>& own,
                        const std::string& instance = "") const {
    Unit unit = ReadUnit(name);
    const std::string program = "/opt/spes-sim/bin/spes-sim ";
    EXPECT_TRUE(unit.start.starts_with(program)) << unit.start;
    std::string line = unit.start.substr(program.size());
    for (const auto& [key, value] : own) unit.environment[key] = value;
    for (const auto& [key, value] : unit.environment) {
      line = std::regex_replace(line, std::regex("\\$\\{" + key + "\\}|\\$" + key + "$"), value);
    }
    line = std::regex_replace(line, std::regex("%i"), instance);
    EXPECT_EQ(line.find_first_of("$%"), std::string::npos) << line;
    return line;
  }
};

TEST_F(DeployTest, UnitsStartTheProgramWithSettingsThatItKnows) {
  const Outcome coordinator = Run(
      Arguments("spes-coordinator.service", {{"SPES_SCENARIO", "tiny.yaml"}}) + " --print-config");
  EXPECT_EQ(coordinator.code, 0) << coordinator.err;
  EXPECT_THAT(coordinator.out, HasSubstr("kind: tcp"));
  EXPECT_THAT(coordinator.out, HasSubstr("status: \"127.0.0.1:9790\""));
  EXPECT_THAT(coordinator.out, HasSubstr("keys: /etc/spes-sim/keys"));
  EXPECT_THAT(coordinator.out, HasSubstr("devices: [cpu]"));
  const Outcome node =
      Run(Arguments("spes-node@.service",
                    {{"SPES_SCENARIO", "tiny.yaml"}, {"SPES_OPTIONS", "--devices cuda:1"}}, "2") +
          " --print-config");
  EXPECT_EQ(node.code, 0) << node.err;
  EXPECT_THAT(node.out, HasSubstr("kind: tcp"));
  EXPECT_THAT(node.out, HasSubstr("devices: [\"cuda:1\"]"));
}

TEST_F(DeployTest, ARunAsTheUnitsStartIt) {
  const std::string hash = HashOf("", "sim.h5");
  ASSERT_EQ(Run("keys k --host localhost").code, 0);
  std::map<std::string, std::string> own = {{"SPES_SCENARIO", "tiny.yaml"},
                                            {"SPES_KEYS", Path("k")},
                                            {"SPES_LISTEN", "0.0.0.0:0"},
                                            {"SPES_STATUS", "127.0.0.1:0"}};
  Background coordinator(folder.string(), Arguments("spes-coordinator.service", own), "c.txt");
  const std::string address = AddressFrom("c.txt");
  // TLS is on as between machines, but the address is of this one.
  own["SPES_JOIN"] = "localhost" + address.substr(address.rfind(':')) + " --set transport.tls=on";
  std::vector<std::unique_ptr<Background>> nodes;
  for (const char* node : {"0", "1", "2", "3"}) {
    nodes.push_back(std::make_unique<Background>(
        folder.string(), Arguments("spes-node@.service", own, node), "n.txt"));
  }
  EXPECT_EQ(coordinator.Wait(), 0) << Read("c.txt");
  for (const auto& node : nodes) EXPECT_EQ(node->Wait(), 0) << Read("n.txt");
  EXPECT_EQ(analysis::ReadRunLogHead(Path("run.h5")).world_hash, hash);
}

TEST_F(DeployTest, UnitsSayWhenToStartAgain) {
  for (const char* name : {"spes-coordinator.service", "spes-node@.service"}) {
    const Unit unit = ReadUnit(name);
    for (const auto& [key, value] : std::map<std::string, std::string>{
             {"Restart", "on-failure"},
             {"RestartPreventExitStatus", "2"},
             {"SuccessExitStatus", "143"},
             {"StateDirectory", "spes-sim"},
             {"NoNewPrivileges", "yes"},
             {"ProtectSystem", "strict"},
         }) {
      const auto found = unit.settings.find(key);
      ASSERT_NE(found, unit.settings.end()) << name << " " << key;
      EXPECT_EQ(found->second, value) << name;
    }
  }
}

TEST_F(DeployTest, SystemdFindsNothingWrong) {
  if (std::system("command -v systemd-analyze >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "no systemd-analyze here";
  }
  for (const auto& [name, as] :
       std::map<std::string, std::string>{{"spes-coordinator.service", "spes-coordinator.service"},
                                          {"spes-node@.service", "spes-node@3.service"}}) {
    // It looks for the program.
    Write(as, std::regex_replace(TextOf(kFolder + name), std::regex("/opt/spes-sim/bin/spes-sim"),
                                 SPES_PROGRAM));
    const int code = std::system(
        ("cd " + folder.string() + " && systemd-analyze verify ./" + as + " >verify.txt 2>&1")
            .c_str());
    EXPECT_EQ(code, 0) << Read("verify.txt");
    EXPECT_EQ(Read("verify.txt").find(as), std::string::npos) << Read("verify.txt");
  }
}

}  // namespace
}  // namespace spes::end_to_end
