// Certificates that expire, and are renewed, while a run goes on.
#include "trainer/runtime/tcp/certificate_watch.h"

#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/runtime/tcp/endpoint.h"
#include "tests/trainer/runtime/tcp/key_ring.h"
#include "tests/trainer/runtime/tcp/payloads.h"
#include "trainer/runtime/tcp/keys.h"

namespace spes::trainer {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::system_clock;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CertificateWatchTest : public testing::Test {
 protected:
  CertificateWatchTest() {
    std::string name = (std::filesystem::temp_directory_path() / "spes-watch-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    Renew(365);
  }
  ~CertificateWatchTest() override { std::filesystem::remove_all(folder_); }

  // A new certificate for so many days.
  void Renew(int days) {
    for (const char* name : {"coordinator.pem", "coordinator-key.pem"}) {
      std::filesystem::remove(folder_ / name);
    }
    MakeKeys({.folder = folder_.string(), .hosts = {"127.0.0.1"}, .days = days, .from = start_});
  }
  TcpSecurity Security() const { return KeyRing::Coordinator("t", folder_.string()); }
  std::unique_ptr<CertificateWatch> Watch(std::function<void()> renew) {
    auto watch = std::make_unique<CertificateWatch>(
        Security(), std::move(renew),
        [this](const std::string& kind, const std::string& line) {
          told_.push_back(kind + ": " + line);
        },
        start_);
    watch->Look(start_);
    return watch;
  }
  std::vector<std::string> Told() { return std::exchange(told_, {}); }

  std::filesystem::path folder_;
  const system_clock::time_point start_ = system_clock::now();
  std::vector<std::string> told_;
};

TEST_F(CertificateWatchTest, WarnsOnceADayWhenTheEndIsNear) {
  const auto watch = Watch([] { ADD_FAILURE() << "nothing is new"; });
  const auto day = [](int days) { return hours(24 * days); };
  watch->Look(start_ + day(340));
  EXPECT_THAT(Told(), IsEmpty());
  for (int hour = 0; hour < 48; ++hour) watch->Look(start_ + day(352) + hours(hour));
  EXPECT_THAT(Told(), ElementsAre(HasSubstr("certificate: "), HasSubstr("expires on 2")));
  EXPECT_THAT(Told(), IsEmpty());
  watch->Look(start_ + day(366));
  EXPECT_THAT(Told(), ElementsAre(HasSubstr("\"spes-sim coordinator\" expired on 2")));
  EXPECT_EQ(system_clock::to_time_t(watch->expires()), system_clock::to_time_t(start_ + day(365)));
}

TEST_F(CertificateWatchTest, WhatHasExpiredIsRefusedAtTheStart) {
  std::filesystem::remove_all(folder_);
  MakeKeys({.folder = folder_.string(), .hosts = {"a"}, .days = 10, .from = start_ - hours(264)});
  EXPECT_THROW(Watch({}), std::invalid_argument);
}

TEST_F(CertificateWatchTest, NewFilesAreTakenUpOnceAndBadOnesNot) {
  int renewed = 0;
  bool bad = false;
  const auto watch = Watch([&] {
    ++renewed;
    if (bad) throw std::invalid_argument("it does not fit");
  });
  Renew(300);
  watch->Look(start_ + std::chrono::seconds(59));
  EXPECT_EQ(renewed, 0) << "once a minute";
  watch->Look(start_ + minutes(1));
  watch->Look(start_ + minutes(2));
  EXPECT_EQ(renewed, 1);
  EXPECT_THAT(Told(), ElementsAre(AllOf(HasSubstr("new certificate: "),
                                        HasSubstr("coordinator.pem"), HasSubstr("expires on 2"))));
  const auto expires = watch->expires();
  EXPECT_EQ(system_clock::to_time_t(expires), system_clock::to_time_t(start_ + hours(24 * 300)));

  bad = true;
  Renew(200);
  watch->Look(start_ + minutes(3));
  watch->Look(start_ + minutes(4));
  EXPECT_EQ(renewed, 2) << "not again before they change";
  EXPECT_THAT(Told(), ElementsAre(HasSubstr("certificate: it does not fit; what was read before "
                                            "stays in use")));
  EXPECT_EQ(watch->expires(), expires);

  std::ofstream(folder_ / "coordinator.pem") << "no certificate";
  watch->Look(start_ + minutes(5));
  EXPECT_EQ(renewed, 2);
  EXPECT_THAT(Told(), ElementsAre(HasSubstr("no certificate in PEM form")));
  bad = false;
  Renew(5);
  watch->Look(start_ + minutes(6));
  EXPECT_EQ(renewed, 3);
  EXPECT_THAT(Told(), ElementsAre(HasSubstr("new certificate: "), HasSubstr("certificate: ")));
}

TEST_F(CertificateWatchTest, NewConnectionsAreShownTheNewCertificateAndOthersGoOn) {
  auto serve = TestServer::Config(3);
  serve.security = Security();
  TestServer server(serve, TableOf(1, 1));
  auto join = TestNode::Config(server.address(), 0);
  join.security = KeyRing::Node("t", folder_.string());
  TestNode early(join, TableOf(1, 1));

  // Files that do not fit change nothing.
  std::filesystem::rename(folder_ / "coordinator-key.pem", folder_ / "key");
  std::filesystem::copy(KeyRing::Strangers() + "/coordinator-key.pem",
                        folder_ / "coordinator-key.pem");
  EXPECT_THROW(server.Get([&] { server.server().RenewCertificate(); }), std::invalid_argument);
  join.node = 1;
  EXPECT_EQ(WhyNot(join, TableOf(1, 1)), "");

  // A new authority, so that it is seen who was shown what.
  std::filesystem::remove_all(folder_);
  Renew(365);
  EXPECT_THAT(WhyNot(join, TableOf(1, 1)), HasSubstr("was signed by an authority that is not"));
  server.Get([&] { server.server().RenewCertificate(); });
  EXPECT_EQ(WhyNot(join, TableOf(1, 1)), "");
  early.Send(kCoordinator, Applied{});
  EXPECT_TRUE(server.UntilGot(1));
}

}  // namespace
}  // namespace spes::trainer
