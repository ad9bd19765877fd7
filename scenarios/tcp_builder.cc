#include "scenarios/tcp_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "scenarios/scenario_difference.h"
#include "scenarios/topology_builder.h"
#include "trainer/runtime/tcp/handshake.h"
#include "trainer/runtime/tcp/host_port.h"
#include "trainer/runtime/tcp/key_files.h"
#include "trainer/sync/codec.h"

namespace spes::scenarios {

namespace {

trainer::Seconds InSeconds(sim::Time t) { return trainer::Seconds(sim::ToSeconds(t)); }

// By its text: names are not looked up, so one that means this machine counts as another.
bool IsOfThisMachine(const trainer::HostPort& address) {
  return address.host.starts_with("127.") || address.host == "localhost" || address.host == "::1";
}

}  // namespace

trainer::TcpOptions BuildTcpOptions(const Scenario& scenario, const trainer::BlockTable& table,
                                    std::string spool) {
  const TransportSection& t = scenario.transport;
  trainer::TcpOptions options;
  options.streams = scenario.network.tcp.streams;
  options.congestion = t.congestion.empty() ? scenario.network.tcp.congestion : t.congestion;
  options.chunk_bytes = t.chunk_bytes;
  options.beat_every = InSeconds(t.beat_every);
  options.dead_after = InSeconds(t.dead_after);
  options.give_up_after = InSeconds(t.give_up_after);
  options.dial_for = InSeconds(t.dial_for);
  options.handshake_time = InSeconds(t.handshake_time);
  options.clock_difference = InSeconds(t.clock_difference);
  options.uploads_in_memory = t.uploads_in_memory;
  // All nodes may be behind one address.
  options.connections_per_address =
      std::max(options.connections_per_address, NodeCount(scenario) * (trainer::kMaxStreams + 2));
  options.spool = std::move(spool);
  options.limits.code_bytes = [&table, up = scenario.sync.up,
                               down = scenario.sync.down](trainer::BlockId id) {
    return std::max(trainer::LargestCode(up, table.dtype(), table[id]),
                    trainer::LargestCode(down, table.dtype(), table[id]));
  };
  return options;
}

trainer::TcpSecurity BuildTcpSecurity(const Scenario& scenario, const std::string& address,
                                      bool coordinator, std::optional<int> node) {
  const TransportSection& t = scenario.transport;
  trainer::TcpSecurity security;
  const bool here = IsOfThisMachine(trainer::ParseHostPort(address));
  security.tls = t.tls == TlsUse::kOn || (t.tls == TlsUse::kAuto && (t.mutual || !here));
  if (t.keys.empty()) {
    if (!security.tls) return security;
    throw std::invalid_argument(fmt::format(
        "{}: connections are encrypted, except to loopback addresses, which needs keys: "
        "make them with `spes-sim keys` and name their folder with transport.keys",
        address));
  }
  const auto file = [&t](const std::string& name) {
    const std::filesystem::path path = std::filesystem::path(t.keys) / name;
    if (!std::ifstream(path)) {
      throw std::invalid_argument(
          fmt::format("{}: cannot be read; is transport.keys the folder "
                      "that `spes-sim keys` has made?",
                      path.string()));
    }
    return path.string();
  };
  security.token = trainer::ReadToken(file("token"));
  if (!security.tls) return security;
  security.ask_certificate = coordinator && t.mutual;
  if (!coordinator || t.mutual) security.authority = file("authority.pem");
  if (coordinator) {
    security.certificate = file("coordinator.pem");
    security.key = file("coordinator-key.pem");
  } else if (t.mutual) {
    if (!node) {
      throw std::invalid_argument(
          "transport.mutual: a node shows its own certificate, so --node must say which it is");
    }
    security.certificate = file(fmt::format("node-{}.pem", *node));
    security.key = file(fmt::format("node-{}-key.pem", *node));
  }
  for (const trainer::CertificateDates& dates : trainer::DatesOf(security)) {
    trainer::CheckDates(dates);
  }
  return security;
}

trainer::TcpScenario BuildTcpScenario(const ScenarioIdentity& identity) {
  return {identity.hash, identity.text,
          [](const std::string& ours, const std::string& theirs) -> std::string {
            try {
              return FirstDifference(ours, theirs, "at the coordinator", "at the node");
            } catch (const std::invalid_argument&) {
              return "the node's scenario cannot be read";
            }
          }};
}

}  // namespace spes::scenarios
