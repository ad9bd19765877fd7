#include "scenarios/tcp_builder.h"

#include "tests/scenarios/scenario_testing.h"

namespace spes::scenarios {
namespace {

TEST(TcpBuilder, CertificatesOfNodesNeedTlsEverywhere) {
  const TempFolder folder;
  std::filesystem::permissions(folder.Write("token", std::string(64, 'a') + "\n"),
                               std::filesystem::perms::owner_read);
  for (const char* name : {"authority.pem", "coordinator.pem", "coordinator-key.pem"}) {
    folder.Write(name, "");
  }
  Scenario s;
  s.transport.keys = folder.Path("");
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
