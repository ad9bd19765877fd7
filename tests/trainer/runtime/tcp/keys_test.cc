// A group's keys: what is made, what is kept, and what is refused.
#include "trainer/runtime/tcp/keys.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/trainer/runtime/tcp/endpoint.h"
#include "tests/trainer/runtime/tcp/key_ring.h"
#include "tests/trainer/runtime/tcp/payloads.h"
#include "trainer/runtime/tcp/certificates.h"
#include "trainer/runtime/tcp/key_files.h"
#include "trainer/runtime/tcp/pem.h"

namespace spes::trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

class KeysTest : public testing::Test {
 protected:
  KeysTest() {
    std::string name = (std::filesystem::temp_directory_path() / "spes-keys-XXXXXX").string();
    base_ = mkdtemp(name.data());
    folder_ = base_ / "k";
  }
  ~KeysTest() override { std::filesystem::remove_all(base_); }

  KeysConfig Config(int nodes = 0, std::vector<std::string> hosts = {"127.0.0.1"}) const {
    return {.folder = folder_.string(), .hosts = std::move(hosts), .nodes = nodes};
  }
  // Names without the folder.
  struct Names {
    std::set<std::string> made, kept;
  };
  Names Make(const KeysConfig& config) {
    const Keys keys = MakeKeys(config);
    warnings_ = keys.warnings;
    Names names;
    for (const std::string& path : keys.made) {
      names.made.insert(std::filesystem::path(path).filename());
    }
    for (const std::string& path : keys.kept) {
      names.kept.insert(std::filesystem::path(path).filename());
    }
    return names;
  }
  // The folder's files and what they hold.
  std::map<std::string, std::string> Files() const {
    std::map<std::string, std::string> files;
    if (!std::filesystem::exists(folder_)) return files;
    for (const auto& file : std::filesystem::directory_iterator(folder_)) {
      std::ifstream in(file.path(), std::ios::binary);
      files[file.path().filename()] = {std::istreambuf_iterator<char>(in), {}};
    }
    return files;
  }
  void Remove(const std::vector<std::string>& names) const {
    for (const std::string& name : names) ASSERT_TRUE(std::filesystem::remove(folder_ / name));
  }
  // Why not; nothing has changed then.
  std::string Refused(const KeysConfig& config) const {
    const auto before = Files();
    try {
      MakeKeys(config);
    } catch (const std::invalid_argument& error) {
      EXPECT_EQ(Files(), before);
      EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
      return error.what();
    }
    return "it was made";
  }

  std::filesystem::path base_, folder_;
  std::vector<std::string> warnings_;
};

TEST_F(KeysTest, SecretsAreForThisUserAlone) {
  EXPECT_THAT(Make(Config(1)).made,
              UnorderedElementsAre("authority.pem", "authority-key.pem", "coordinator.pem",
                                   "coordinator-key.pem", "node-0.pem", "node-0-key.pem", "token"));
  for (const auto& [name, text] : Files()) {
    struct stat status {};
    ASSERT_EQ(stat((folder_ / name).c_str(), &status), 0);
    const bool secret = name.ends_with("-key.pem") || name == "token";
    EXPECT_EQ(status.st_mode & 077, secret ? 0u : 044u) << name;
  }
}

TEST_F(KeysTest, AGroupGrows) {
  Make(Config(1));
  const auto before = Files();
  const Names more = Make(Config(3, {}));
  EXPECT_THAT(more.made,
              UnorderedElementsAre("node-1.pem", "node-1-key.pem", "node-2.pem", "node-2-key.pem"));
  EXPECT_THAT(more.kept,
              UnorderedElementsAre("authority.pem", "authority-key.pem", "coordinator.pem",
                                   "coordinator-key.pem", "node-0.pem", "node-0-key.pem", "token"));
  const auto after = Files();
  for (const auto& [name, text] : before) EXPECT_EQ(after.at(name), text) << name;
  EXPECT_THAT(Make(Config(3)).made, IsEmpty());
  EXPECT_EQ(Files(), after);

  // The coordinator of the first day lets in the node of the second.
  TcpSecurity coordinator = KeyRing::Coordinator("", folder_.string());
  coordinator.authority = folder_ / "authority.pem";
  coordinator.ask_certificate = true;
  auto serve = TestServer::Config(3);
  serve.security = coordinator;
  TestServer server(serve, TableOf(1, 1));
  auto join = TestNode::Config(server.address(), 2);
  join.security = KeyRing::MutualNode(2, folder_.string());
  join.security.authority = coordinator.authority;
  EXPECT_EQ(WhyNot(join, TableOf(1, 1)), "");
}

TEST_F(KeysTest, WhatWasRemovedIsMadeAnew) {
  Make(Config(1));
  const auto before = Files();
  Remove({"coordinator.pem", "coordinator-key.pem", "token"});
  EXPECT_THAT(Refused(Config(1, {})),
              AllOf(HasSubstr("coordinator.pem is to be made"), HasSubstr("--host")));
  EXPECT_THAT(Make(Config(1, {"a.example", "10.0.0.7"})).made,
              UnorderedElementsAre("coordinator.pem", "coordinator-key.pem", "token"));
  const auto after = Files();
  for (const auto& [name, text] : before) {
    const bool removed = name.starts_with("coordinator") || name == "token";
    EXPECT_EQ(after.at(name) == text, !removed) << name;
  }
  const auto authority = ReadCertificates(folder_ / "authority.pem");
  const auto coordinator = ReadCertificates(folder_ / "coordinator.pem");
  EXPECT_EQ(X509_verify(coordinator[0].get(), X509_get0_pubkey(authority[0].get())), 1);
  EXPECT_EQ(NamesOf(coordinator[0].get()), "a.example, 10.0.0.7");
}

TEST_F(KeysTest, WithoutTheAuthoritysKeyNothingIsMade) {
  Make(Config(1));
  Remove({"authority-key.pem"});
  EXPECT_THAT(Make(Config(1)).made, IsEmpty()) << "nothing is missing";
  EXPECT_THAT(Refused(Config(2)),
              AllOf(HasSubstr("node-1.pem is missing"), HasSubstr("authority-key.pem")));
  Remove({"token"});
  EXPECT_THAT(Refused(Config(1)),
              AllOf(HasSubstr("token is missing"), HasSubstr("authority-key.pem")));
  Remove({"authority.pem"});
  EXPECT_THAT(Refused(Config(1)), AllOf(HasSubstr("coordinator.pem is there, but not"),
                                        HasSubstr("authority.pem, the authority that signed it")));
}

TEST_F(KeysTest, HalvesOfPairsAreNamed) {
  for (const std::string& half : {std::string("coordinator.pem"), std::string("node-0-key.pem"),
                                  std::string("authority.pem")}) {
    Make(Config(1));
    Remove({half});
    EXPECT_THAT(Refused(Config(1)), HasSubstr("but not " + (folder_ / half).string())) << half;
    std::filesystem::remove_all(folder_);
  }
}

TEST_F(KeysTest, TheCoordinatorsCertificateIsForTheHostsThatAreGiven) {
  Make(Config(0, {"train.example.org", "10.0.0.1"}));
  EXPECT_THAT(Make(Config(0, {"TRAIN.example.org"})).made, IsEmpty());
  EXPECT_THAT(Refused(Config(0, {"10.0.0.1", "other.example.org"})),
              AllOf(HasSubstr("coordinator.pem is for train.example.org, 10.0.0.1, not for other"),
                    HasSubstr("remove coordinator.pem and coordinator-key.pem")));
  EXPECT_THAT(Refused(Config(0, {"a b"})), HasSubstr("\"a b\" is no name or address of a host"));
}

TEST_F(KeysTest, ACertificateDoesNotOutliveItsAuthority) {
  using std::chrono::sys_days;
  KeysConfig config = Config(1);
  config.from = sys_days(std::chrono::year(2020) / 1 / 1);
  Make(config);
  const auto until = [this](const char* name) {
    return Date(X509_get0_notAfter(ReadCertificates(folder_ / name).front().get()));
  };
  EXPECT_EQ(until("coordinator.pem"), "2020-12-31 00:00 UTC");
  EXPECT_EQ(until("node-0.pem"), "2020-12-31 00:00 UTC");
  EXPECT_EQ(until("authority.pem"), "2029-12-29 00:00 UTC") << "ten years";
  config.nodes = 2;
  config.from = sys_days(std::chrono::year(2029) / 12 / 1);
  EXPECT_THAT(Refused(config), AllOf(HasSubstr("authority.pem expires on 2029-12-29"),
                                     HasSubstr("--days 28 at most")));
  config.days = 28;
  EXPECT_THAT(Make(config).made, UnorderedElementsAre("node-1.pem", "node-1-key.pem"));
  EXPECT_EQ(until("node-1.pem"), until("authority.pem"));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("\"spes-sim coordinator\" expired on 2020-12-31"),
                                     HasSubstr("\"spes-sim node 0\" expired on 2020-12-31")));
  config.nodes = 3;
  config.from = sys_days(std::chrono::year(2030) / 1 / 1);
  EXPECT_THAT(Refused(config), HasSubstr("\"spes-sim authority\" expired on 2029-12-29"));
  std::filesystem::remove_all(folder_);
  config.days = 5000;
  Make(config);
  EXPECT_EQ(until("authority.pem"), until("node-2.pem"));
}

TEST_F(KeysTest, TheAuthoritysKeyMustBeItsOwnAndPrivate) {
  Make(Config());
  std::filesystem::permissions(folder_ / "authority-key.pem", std::filesystem::perms(0660));
  EXPECT_THAT(Refused(Config(1)), HasSubstr("others may read or replace this key"));
  std::filesystem::copy_file(folder_ / "coordinator-key.pem", folder_ / "authority-key.pem",
                             std::filesystem::copy_options::overwrite_existing);
  std::filesystem::permissions(folder_ / "authority-key.pem", std::filesystem::perms(0600));
  EXPECT_THAT(Refused(Config(1)), HasSubstr("authority-key.pem: not the key of"));
}

TEST_F(KeysTest, AClockThatIsBehindDoesNoHarm) {
  Make(Config(1));
  const auto behind = std::chrono::system_clock::now() - std::chrono::minutes(5);
  for (const char* name : {"authority.pem", "coordinator.pem", "node-0.pem"}) {
    EXPECT_EQ(CheckDates(DatesOf(folder_ / name), behind), "") << name;
  }
}

TEST_F(KeysTest, WhatCannotBeWrittenWholeLeavesNothing) {
  std::filesystem::create_directories(folder_ / "token.tmp");  // where the last file would begin
  EXPECT_THROW(MakeKeys(Config(1)), std::runtime_error);
  std::filesystem::remove(folder_ / "token.tmp");
  EXPECT_THAT(Files(), IsEmpty());
  Make(Config(1));
  const auto before = Files();
  std::filesystem::create_directories(folder_ / "node-2.pem.tmp");
  EXPECT_THROW(MakeKeys(Config(3)), std::runtime_error);
  std::filesystem::remove(folder_ / "node-2.pem.tmp");
  EXPECT_EQ(Files(), before);
  EXPECT_EQ(Make(Config(3)).made.size(), 4u);
}

}  // namespace
}  // namespace spes::trainer
