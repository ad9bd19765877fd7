#include "scenarios/tcp_builder.h"

#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>

#include "tests/scenarios/scenario_testing.h"
#include "trainer/runtime/tcp/keys.h"

namespace spes::scenarios {
namespace {

TEST(TcpBuilder, CertificatesOfNodesNeedTlsEverywhere) {
  const TempFolder folder;
  Scenario s;
  s.transport.keys = folder.Path("keys");
  trainer::MakeKeys({.folder = s.transport.keys, .hosts = {"localhost"}});
  for (const char* here : {"127.0.0.1:0", "localhost:1", "[::1]:1"}) {
    s.transport.mutual = false;
    EXPECT_FALSE(BuildTcpSecurity(s, here, true, std::nullopt).tls) << here;
    s.transport.mutual = true;
    const trainer::TcpSecurity security = BuildTcpSecurity(s, here, true, std::nullopt);
    EXPECT_TRUE(security.tls && security.ask_certificate) << here;
  }
  s.transport.mutual = false;
  EXPECT_TRUE(BuildTcpSecurity(s, "train.example.org:1", true, std::nullopt).tls);
}

TEST(TcpBuilder, BothSidesLookAtTheDatesOfWhatTheyShowAndBelieve) {
  const TempFolder folder;
  Scenario s;
  s.transport.keys = folder.Path("keys");
  s.transport.mutual = true;
  // The authority's own certificate is good for ten years.
  trainer::MakeKeys({.folder = s.transport.keys,
                     .hosts = {"localhost"},
                     .nodes = 1,
                     .days = 30,
                     .from = std::chrono::system_clock::now() - std::chrono::hours(24 * 31)});
  const auto error = [&s](bool coordinator) {
    return ErrorOf([&] {
      BuildTcpSecurity(s, "localhost:1", coordinator,
                       coordinator ? std::nullopt : std::optional(0));
    });
  };
  EXPECT_THAT(error(true), testing::HasSubstr("certificate \"spes-sim coordinator\" expired on"));
  EXPECT_THAT(error(false), testing::HasSubstr("certificate \"spes-sim node 0\" expired on"));
  s.transport.tls = TlsUse::kOn;
  s.transport.mutual = false;
  EXPECT_NO_THROW(BuildTcpSecurity(s, "localhost:1", false, 0)) << "it shows none";
  std::filesystem::remove_all(s.transport.keys);
  trainer::MakeKeys({.folder = s.transport.keys,
                     .hosts = {"localhost"},
                     .from = std::chrono::sys_days(std::chrono::year(2000) / 1 / 1)});
  EXPECT_THAT(error(false), testing::HasSubstr("certificate \"spes-sim authority\" expired on"));
}

TEST(TcpBuilder, WhatIsNoAddressIsNamedFirst) {
  for (const TlsUse tls : {TlsUse::kAuto, TlsUse::kOn, TlsUse::kOff}) {
    Scenario s;
    s.transport.tls = tls;
    EXPECT_EQ(
        ErrorOf([&] { BuildTcpSecurity(s, "localhost", true, std::nullopt); }),
        "\"localhost\" is no address: write HOST:PORT or [IPV6]:PORT, the port at most 65535");
  }
}

}  // namespace
}  // namespace spes::scenarios
