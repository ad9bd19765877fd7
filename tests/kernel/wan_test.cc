// Real sockets in network namespaces, over a topology in real time. About 20 s.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/netns/host_namespaces.h"
#include "sim/ns3/emulation.h"
#include "sim/ns3/packet_network.h"
#include "tests/kernel/kernel_transfer.h"

namespace spes::kernel {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr const char* kPrefix = "spes-test";
constexpr sim::Time kMostLag = 40ms;  // of a measurement: a round trip of it

sim::HostNamespacesSettings Settings(int nodes, const std::string& prefix = kPrefix) {
  sim::HostNamespacesSettings settings{.prefix = prefix, .nodes = nodes, .macs = {}};
  for (int host = 0; host <= nodes; ++host) settings.macs.push_back(sim::MacOfHost(host));
  return settings;
}

std::vector<std::string> Names(const std::string& prefix) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/run/netns", none)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(prefix)) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

class WanTest : public testing::Test {
 protected:
  void SetUp() override {
    try {
      const sim::HostNamespaces probe(Settings(0));
    } catch (const std::runtime_error& error) {
      GTEST_SKIP() << error.what();
    }
  }
};

// Nodes at one site and the coordinator, all on links alike; the coordinator's is fast.
sim::Topology Star(int nodes, const sim::AccessLink& link) {
  sim::Topology topology;
  topology.sites = {"here"};
  topology.paths = {{sim::SitePath{}}};
  for (int i = 0; i < nodes; ++i) {
    topology.hosts.push_back({.name = "node " + std::to_string(i), .link = link});
  }
  topology.hosts.push_back({.name = "coordinator", .link = {}});
  return topology;
}

class Wan {
 public:
  explicit Wan(const sim::Topology& topology, const sim::HostNamespacesSettings& settings)
      : hosts(settings), emulation(topology, {}, hosts.TakeTaps()) {}
  explicit Wan(const sim::Topology& topology)
      : Wan(topology, Settings(static_cast<int>(topology.hosts.size()) - 1)) {}

  TransferResult Transfer(int from, int to, std::int64_t bytes,
                          const std::string& congestion = "cubic") {
    return kernel::Transfer({hosts.space(from), hosts.space(to), hosts.Address(to), 4e6},
                            {.bytes = bytes, .congestion = congestion});
  }

  sim::HostNamespaces hosts;
  sim::Emulation emulation;
};

// A UDP socket of a host.
class Datagrams {
 public:
  Datagrams(const Wan& wan, int host) {
    wan.hosts.space(host).Run([&] {
      socket_ = sim::Descriptor(
          sim::Check(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "a UDP socket"));
    });
    const int room = 16 << 20;
    setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
    address_ = {.sin_family = AF_INET, .sin_port = htons(9001), .sin_addr = {}, .sin_zero = {}};
    inet_pton(AF_INET, wan.hosts.Address(host).c_str(), &address_.sin_addr);
    sim::Check(bind(socket_.get(), Address(), sizeof address_), "binding");
  }

  void Send(const Datagrams& to, std::size_t bytes) const {
    const std::string data(bytes, 'x');
    sim::Check(sendto(socket_.get(), data.data(), data.size(), 0, to.Address(), sizeof address_),
               "sending");
  }
  // Whether one comes in time.
  bool Receive(std::chrono::milliseconds patience) const {
    pollfd wait{socket_.get(), POLLIN, 0};
    if (sim::Check(poll(&wait, 1, static_cast<int>(patience.count())), "poll") == 0) return false;
    char byte;
    return recv(socket_.get(), &byte, 1, MSG_TRUNC) >= 0;
  }

 private:
  const sockaddr* Address() const { return reinterpret_cast<const sockaddr*>(&address_); }

  sim::Descriptor socket_;
  sockaddr_in address_;
};

TEST_F(WanTest, TheRoundTripIsThePaths) {
  const sim::Topology topology = Star(2, {.down_bps = 100e6, .up_bps = 100e6, .rtt = 40ms});
  const Wan wan(topology);
  const Datagrams a(wan, 0), b(wan, 1);
  double least = 1;  // other programs may delay one or the other
  for (int i = 0; i < 10; ++i) {
    const Clock::time_point start = Clock::now();
    a.Send(b, 20);
    ASSERT_TRUE(b.Receive(5s));
    b.Send(a, 20);
    ASSERT_TRUE(a.Receive(5s));
    least = std::min(least, std::chrono::duration<double>(Clock::now() - start).count());
  }
  EXPECT_GT(least, 0.080);
  EXPECT_LT(least, 0.085);
}

TEST_F(WanTest, RatesDifferByDirection) {
  Wan wan(Star(1, {.down_bps = 20e6, .up_bps = 5e6, .rtt = 10ms}));
  const double segment = 1448.0 / 1502;
  const TransferResult up = wan.Transfer(0, 1, 1'000'000), down = wan.Transfer(1, 0, 4'000'000);
  EXPECT_LT(up.goodput_bps, 5e6 * segment * 1.01);
  EXPECT_LT(down.goodput_bps, 20e6 * segment * 1.01);
  const sim::EmulationCounts counts = wan.emulation.Counts();
  EXPECT_GT(counts.wire_bytes, 5'000'000 / segment);
  if (counts.lag > kMostLag) GTEST_SKIP() << "too busy: lag of " << sim::ToSeconds(counts.lag);
  EXPECT_GT(up.goodput_bps, 5e6 * segment * 0.8);
  EXPECT_GT(down.goodput_bps, 20e6 * segment * 0.8);
}

TEST_F(WanTest, LossesTakeTheirShare) {
  constexpr int kDatagrams = 4000;
  constexpr int kUnderWay = 20;  // at once: fewer than the link's queue holds
  constexpr double kLoss = 0.05;
  sim::Topology topology = Star(1, {.down_bps = 1e9, .up_bps = 1e9, .rtt = 2ms});
  topology.hosts[0].link.loss = kLoss;
  Wan wan(topology);
  const Datagrams node(wan, 0), coordinator(wan, 1);
  int arrived = 0;
  const Clock::time_point start = Clock::now();
  for (int sent = 0; sent < kDatagrams; sent += kUnderWay) {
    for (int i = 0; i < kUnderWay; ++i) node.Send(coordinator, 1000);
    while (arrived + wan.emulation.Counts().links[0].dropped_packets < sent + kUnderWay) {
      ASSERT_LT(Clock::now() - start, 60s);
      arrived += coordinator.Receive(1ms);
    }
  }
  const double expected = kDatagrams * (1 - kLoss);
  EXPECT_NEAR(arrived, expected, 5 * std::sqrt(kDatagrams * kLoss));
  const sim::EmulationCounts counts = wan.emulation.Counts();
  EXPECT_EQ(counts.frames, arrived);
  EXPECT_EQ(counts.links[0].dropped_packets, kDatagrams - arrived);
  EXPECT_EQ(counts.queue_overflows[0], 0);
  EXPECT_EQ(wan.hosts.DroppedByDevices(), 0);
}

TEST_F(WanTest, ATransferTakesAsLongAsThePacketLevelSays) {
  const sim::Topology topology = Star(1, {.down_bps = 100e6, .up_bps = 50e6, .rtt = 40ms});
  constexpr std::int64_t kBytes = 20'000'000;
  double predicted = 0;
  {
    const auto network = sim::MakePacketNetwork(topology, {});
    network->Prepare(0, 1, 1);
    network->Start({.from = 0, .to = 1, .bytes = kBytes},
                   [&](const auto& result) { predicted = sim::ToSeconds(result.end); });
    while (predicted == 0) network->AdvanceTo(sim::kNever);
  }
  Wan wan(topology);
  const TransferResult result = wan.Transfer(0, 1, kBytes);
  const sim::EmulationCounts counts = wan.emulation.Counts();
  if (counts.lag > kMostLag) GTEST_SKIP() << "too busy: lag of " << sim::ToSeconds(counts.lag);
  EXPECT_NEAR(result.seconds / predicted, 1, 0.15) << "predicted: " << predicted << " s";
  EXPECT_EQ(wan.hosts.DroppedByDevices(), 0) << "nothing but the links loses anything";
}

TEST_F(WanTest, HostsTcpIsTheScenarios) {
  sim::HostNamespacesSettings settings = Settings(1);
  settings.congestion = "reno";
  settings.tcp_buffer = 50'000'000;
  const Wan wan(Star(1, {.rtt = 2ms}), settings);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(9002);
  inet_pton(AF_INET, wan.hosts.Address(1).c_str(), &address.sin_addr);
  const auto* const plain = reinterpret_cast<const sockaddr*>(&address);
  sim::Descriptor listener, client;
  wan.hosts.space(1).Run([&] {
    listener = sim::Descriptor(sim::Check(socket(AF_INET, SOCK_STREAM, 0), "a socket"));
    sim::Check(bind(listener.get(), plain, sizeof address), "binding");
    sim::Check(listen(listener.get(), 1), "listening");
  });
  wan.hosts.space(0).Run([&] {
    client = sim::Descriptor(sim::Check(socket(AF_INET, SOCK_STREAM, 0), "a socket"));
    sim::Check(connect(client.get(), plain, sizeof address), "connecting");
  });
  const sim::Descriptor server(sim::Check(accept(listener.get(), nullptr, nullptr), "accepting"));
  for (const sim::Descriptor* end :
       std::initializer_list<const sim::Descriptor*>{&client, &server}) {
    char name[32] = {};
    socklen_t size = sizeof name;
    sim::Check(getsockopt(end->get(), IPPROTO_TCP, TCP_CONGESTION, name, &size), "TCP_CONGESTION");
    EXPECT_STREQ(name, "reno");
  }
  EXPECT_EQ(wan.hosts.space(0).Command("cat /proc/sys/net/ipv4/tcp_rmem"),
            "4096\t131072\t50000000\n");
}

TEST_F(WanTest, TheTeardownLeavesNothing) {
  {
    const Wan wan(Star(2, {}));
    EXPECT_EQ(Names(kPrefix), (std::vector<std::string>{"spes-test-coordinator", "spes-test-node0",
                                                        "spes-test-node1"}));
    EXPECT_THROW(sim::HostNamespaces(Settings(1)), std::runtime_error) << "the prefix is taken";
    const sim::HostNamespaces other(Settings(0, "spes-test-node1"));  // a prefix of its own
    EXPECT_EQ(Names("spes-test-node1").size(), 2u);
  }
  EXPECT_EQ(Names(kPrefix), std::vector<std::string>{});
}

TEST_F(WanTest, WhatAKilledProcessLeftIsCleared) {
  const sim::Namespace others("spes-test-nodex");  // not ours by its name
  EXPECT_EXIT(
      {
        const sim::HostNamespaces hosts(Settings(3));
        raise(SIGKILL);
      },
      testing::KilledBySignal(SIGKILL), "");
  EXPECT_EQ(Names(kPrefix).size(), 5u) << "four hosts and the other";
  { const sim::HostNamespaces hosts(Settings(1)); }
  EXPECT_EQ(Names(kPrefix), std::vector<std::string>{"spes-test-nodex"});
}

TEST_F(WanTest, BadPrefixesAreRefused) {
  for (const std::string prefix : {"", "a b", "$(id)", "UPPER", "a/b"}) {
    EXPECT_THROW(sim::HostNamespaces(Settings(0, prefix)), std::invalid_argument) << prefix;
  }
}

}  // namespace
}  // namespace spes::kernel
