// A coordinator that is reached by a name.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "tests/trainer/runtime/tcp/endpoint.h"
#include "tests/trainer/runtime/tcp/frame_bytes.h"
#include "tests/trainer/runtime/tcp/payloads.h"
#include "trainer/runtime/tcp/address.h"
#include "trainer/runtime/tcp/handshake.h"

// "two.test" has two addresses: 127.0.0.2, then 127.0.0.1; as long as names are known.
static std::atomic<bool> names_are_known = true;
extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints,
                           addrinfo** found) {
  static const auto real =
      reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  if (!node || std::strcmp(node, "two.test") != 0) return real(node, service, hints, found);
  if (!names_are_known) return EAI_AGAIN;
  if (const int error = real("127.0.0.2", service, hints, found)) return error;
  addrinfo* last = *found;
  while (last->ai_next) last = last->ai_next;
  return real("127.0.0.1", service, hints, &last->ai_next);
}

namespace spes::trainer {
namespace {

// Listens at 127.0.0.2.
class Listener {
 public:
  explicit Listener(std::uint16_t port, int backlog) {
    address_.sin_family = AF_INET;
    address_.sin_port = htons(port);
    inet_pton(AF_INET, "127.0.0.2", &address_.sin_addr);
    EXPECT_EQ(bind(fd_, address(), sizeof(address_)), 0);
    EXPECT_EQ(listen(fd_, backlog), 0);
  }
  ~Listener() { close(fd_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  int fd() const { return fd_; }
  const sockaddr* address() const { return reinterpret_cast<const sockaddr*>(&address_); }

 private:
  int fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address_{};
};

// Swallows whatever is sent to 127.0.0.2 at this port.
class Silent {
 public:
  explicit Silent(std::uint16_t port) : listener_(port, 0) {
    for (int i = 0; i < 3; ++i) {
      fds_.push_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      connect(fds_.back(), listener_.address(), sizeof(sockaddr_in));
    }
  }
  ~Silent() {
    for (const int fd : fds_) close(fd);
  }

 private:
  Listener listener_;
  std::vector<int> fds_;
};

// Says this to whoever comes to 127.0.0.2 at this port, hears a little, and closes.
class OtherProgram {
 public:
  OtherProgram(std::uint16_t port, std::string said)
      : listener_(port, 16), says_([this, said = std::move(said)] { Run(said); }) {}
  ~OtherProgram() {
    stop_ = true;
    says_.join();
  }
  int connections() const { return connections_; }

 private:
  void Run(const std::string& said) {
    while (!stop_) {
      pollfd waiting{listener_.fd(), POLLIN, 0};
      if (poll(&waiting, 1, 20) <= 0) continue;
      const int fd = accept(listener_.fd(), nullptr, nullptr);
      ++connections_;
      send(fd, said.data(), said.size(), MSG_NOSIGNAL);
      char heard[64];
      const ssize_t got = recv(fd, heard, sizeof(heard), 0);
      EXPECT_GE(got, -1);
      close(fd);
    }
  }

  Listener listener_;
  std::atomic<bool> stop_ = false;
  std::atomic<int> connections_ = 0;
  std::thread says_;
};

std::uint16_t PortOf(const TestServer& server) {
  const std::string port = server.address().substr(server.address().rfind(':') + 1);
  return static_cast<std::uint16_t>(std::stoi(port));
}

std::string NextVersion() {
  std::string frame = FrameBytes(FrameType::kChallenge, 0, Encode(Challenge{}));
  frame[4] = 9;
  return frame;
}

// Empty: it is let in within two tries. Otherwise why not.
std::string WhyNotInTwoTries(const TcpJoinConfig& config) {
  ComputePool pool(1);
  MemoryRecorder recorder;
  std::atomic<bool> stop = false;
  std::string why;
  int tries = 0;
  try {
    const auto client =
        JoinTcp(config, TableOf(1, 1), pool, recorder, stop, [&](const std::string& text) {
          why = text;
          if (++tries == 2) stop = true;
        });
    return client ? "" : why;
  } catch (const std::exception& error) {
    return error.what();
  }
}

TEST(Dial, AddressesOfANameAreTriedUntilOneAnswers) {
  TestServer server(TestServer::Config(1), TableOf(1, 1));
  const Silent silent(PortOf(server));
  auto config = TestNode::Config("two.test:" + std::to_string(PortOf(server)), 0);
  config.options.dead_after = Seconds(5);  // longer than handshake_time, as by default
  EXPECT_EQ(WhyNotInTwoTries(config), "");
}

TEST(Dial, AnotherProgramAtAnAddressOfTheNameDoesNotKeepANodeOut) {
  for (const std::string& said :
       {std::string(), "HTTP/1.1 400 Bad Request\r\n" + std::string(99, 'x'), NextVersion()}) {
    TestServer server(TestServer::Config(1), TableOf(1, 1));
    const OtherProgram other(PortOf(server), said);
    EXPECT_EQ(WhyNotInTwoTries(TestNode::Config("two.test:" + std::to_string(PortOf(server)), 0)),
              "");
    EXPECT_EQ(other.connections(), 1);
  }
}

TEST(Dial, OfSeveralFailuresTheOneForGoodIsReported) {
  TestServer only_for_its_port(TestServer::Config(1), TableOf(1, 1));
  const std::uint16_t port = PortOf(only_for_its_port);
  only_for_its_port.Halt();
  only_for_its_port.runtime.reset();
  const OtherProgram other(port, NextVersion());
  EXPECT_THAT(WhyNotInTwoTries(TestNode::Config("two.test:" + std::to_string(port), 0)),
              testing::HasSubstr("version 9"));
  EXPECT_EQ(other.connections(), 1);
}

TEST(Dial, TheAddressThatLetANodeInComesFirstAndIsEnoughWhereTheNameIsNotKnownAnyMore) {
  const auto table = TableOf(1, 1);
  auto serve = TestServer::Config(1);
  auto server = std::make_unique<TestServer>(serve, table);
  serve.address = server->address();
  const OtherProgram other(PortOf(*server), "");
  auto join = TestNode::Config("two.test:" + std::to_string(PortOf(*server)), 0);
  join.options.handshake_time = Seconds(60);  // no address has its share used up
  join.options.dial_for = Seconds(20);
  TestNode node(join, table);
  while (!server->StatusOf(0).connected) std::this_thread::yield();
  EXPECT_EQ(other.connections(), 1);
  names_are_known = false;
  server.reset();
  TestServer again(serve, table);
  EXPECT_TRUE(node.Until([&] { return node.ended || !node.renewed.empty(); }));
  names_are_known = true;
  EXPECT_FALSE(node.ended);
  EXPECT_EQ(other.connections(), 1);
}

TEST(Dial, NetworksAreOf24BitsOr48AndThoseOfThisMachineOfOneAddress) {
  const auto network = [](const char* text) { return NetworkOf(asio::ip::make_address(text)); };
  EXPECT_EQ(network("192.0.2.7"), "192.0.2.0/24");
  EXPECT_EQ(network("::ffff:192.0.2.7"), "192.0.2.0/24");
  EXPECT_EQ(network("2001:db8:1:2:3:4:5:6"), "2001:db8:1::/48");
  EXPECT_EQ(network("127.0.0.7"), "127.0.0.7");
  EXPECT_EQ(network("::1"), "::1");
}

TEST(Dial, ConnectionsAreCountedByNetworkWhereOneSubscriberHasManyAddresses) {
  const auto counted = [](const char* text) { return CountedAs(asio::ip::make_address(text)); };
  EXPECT_EQ(counted("192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(counted("::ffff:192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(counted("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
  EXPECT_EQ(counted("2001:db8:1:2::9"), "2001:db8:1:2::/64");
  EXPECT_EQ(counted("::1"), "::1");
}

TEST(Dial, TheCoordinatorListensAtTheFirstAddressOfItsNameThatIsFree) {
  TestServer first(TestServer::Config(1), TableOf(1, 1));
  auto config = TestServer::Config(1);
  const std::string port = std::to_string(PortOf(first));
  const Silent taken(PortOf(first));
  config.address = "two.test:" + port;
  EXPECT_THROW(TestServer(config, TableOf(1, 1)), std::invalid_argument);
  first.Halt();
  first.runtime.reset();
  TestServer second(config, TableOf(1, 1));
  TestNode node(TestNode::Config("127.0.0.1:" + port, 0), TableOf(1, 1));
}

}  // namespace
}  // namespace spes::trainer
