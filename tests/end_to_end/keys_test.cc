// Who may take part in a real run: keys that are made, grow and expire.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/end_to_end/real_run.h"
#include "trainer/runtime/tcp/keys.h"

namespace spes::end_to_end {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class KeysTest : public RealRunTest {
 protected:
  bool There(const std::string& file) const { return std::filesystem::exists(folder / file); }
  void ExpectRefused(const std::string& arguments, const std::string& said) const {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(said)) << arguments;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
  // The address that the processes of a run in this folder join; empty where there are none.
  std::string JoinedAddress() const {
    for (const auto& process : std::filesystem::directory_iterator("/proc")) {
      std::error_code gone;
      if (std::filesystem::read_symlink(process.path() / "cwd", gone) != folder) continue;
      std::ifstream file(process.path() / "cmdline");
      const std::string words(std::istreambuf_iterator<char>(file), {});
      const std::string join = std::string("--join") + '\0';
      const std::size_t at = words.find(join);
      if (at != std::string::npos) return words.c_str() + at + join.size();
    }
    return "";
  }
};

TEST_F(KeysTest, AGroupGrowsByWhoHasTheAuthoritysKey) {
  ExpectRefused("keys k --nodes 1", "--host");
  EXPECT_FALSE(There("k"));
  const Outcome first = Run("keys k --host 127.0.0.1 --nodes 1");
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out,
              AllOf(HasSubstr("made k/authority-key.pem\n"), HasSubstr("made k/node-0.pem\n"),
                    Not(HasSubstr("kept")), HasSubstr("keep it off the coordinator")));
  const Outcome more = Run("keys k --nodes 3");
  EXPECT_EQ(more.code, 0) << more.err;
  EXPECT_THAT(more.out,
              AllOf(HasSubstr("kept k/authority.pem\n"), HasSubstr("kept k/node-0-key.pem\n"),
                    HasSubstr("made k/node-2-key.pem\n"), HasSubstr("kept k/token\n"),
                    Not(HasSubstr("made k/token"))));
  ExpectRefused("keys k --host elsewhere.example",
                "k/coordinator.pem is for 127.0.0.1, not for elsewhere.example");
  std::filesystem::remove(folder / "k/authority-key.pem");
  EXPECT_EQ(Run("keys k --nodes 3").code, 0) << "nothing is missing";
  ExpectRefused("keys k --nodes 4", "k/authority-key.pem");
}

TEST_F(KeysTest, ANodeIsWarnedOfItsOwnCertificate) {
  ASSERT_EQ(Run("keys k --host 127.0.0.1 --nodes 1 --days 10").code, 0);
  const std::string join =
      "tiny.yaml --join 127.0.0.1:9 --node 0 --output n.h5 --set transport.dial_for=100ms --set "
      "transport.keys=k --set transport.mutual=";
  const Outcome own = Run(join + "true");
  EXPECT_EQ(own.code, 3) << own.err;
  EXPECT_THAT(own.err, AllOf(HasSubstr("warning: k/node-0.pem: the certificate \"spes-sim node 0\" "
                                       "expires on 2"),
                             Not(HasSubstr("authority.pem"))));
  const Outcome event = Run(join + "true --log-format json");
  EXPECT_THAT(event.err, HasSubstr("\"level\":\"warning\",\"node\":0,\"round\":0,\"run_s\":0.0,"
                                   "\"event\":\"certificate\""));
  EXPECT_THAT(Run(join + "false").err, Not(HasSubstr("expires")));
  std::filesystem::remove_all(folder / "k");
  trainer::MakeKeys({.folder = Path("k"),
                     .hosts = {"127.0.0.1"},
                     .nodes = 1,
                     .from = std::chrono::sys_days(std::chrono::year(2000) / 1 / 1)});
  ExpectRefused(join + "true --quiet", "\"spes-sim node 0\" expired on 2000-12-31");
}

// Whoever else is on this machine may connect to a loopback address.
TEST_F(KeysTest, ARunOfThisMachineLetsInItsOwnNodesOnly) {
  const std::string options = " --set training.steps=4000 --output a.h5";
  const std::string token = "a.journal/token";
  const auto begin = [&] {
    auto run = Start("--transport tcp" + options, "a.txt");
    for (int i = 0; i < 3000 && JoinedAddress().empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return run;
  };
  auto run = begin();
  struct stat status {};
  ASSERT_EQ(stat(Path(token).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 077, 0U);
  const std::string secret = Read(token);
  ExpectRefused("tiny.yaml --join " + JoinedAddress() + " --set training.steps=4000 --output b.h5",
                "asks for a token");
  while (!There("a.journal/coordinator/round-00000002.safetensors") && !JoinedAddress().empty()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(There("a.journal/coordinator/round-00000002.safetensors")) << "its own are let in";
  run->Signal(SIGTERM);
  EXPECT_EQ(run->Wait(), 128 + SIGTERM);
  EXPECT_FALSE(There(token));
  const std::string said = Read("a.journal/node-0.txt");
  EXPECT_THAT(said, HasSubstr("let in"));

  run = begin();
  EXPECT_NE(Read(token), secret) << "another one each time";
  EXPECT_EQ(Read("a.journal/node-0.txt.old"), said) << "it may say why the last run failed";
  run->Signal(SIGTERM);
  EXPECT_EQ(run->Wait(), 128 + SIGTERM);
}

}  // namespace
}  // namespace spes::end_to_end
