// A coordinator that is reached by a name.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <vector>

#include "tests/trainer/runtime/tcp/endpoint.h"
#include "tests/trainer/runtime/tcp/payloads.h"
#include "trainer/runtime/tcp/address.h"

// "two.test" has two addresses: 127.0.0.2, then 127.0.0.1.
extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints,
                           addrinfo** found) {
  static const auto real =
      reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  if (!node || std::strcmp(node, "two.test") != 0) return real(node, service, hints, found);
  if (const int error = real("127.0.0.2", service, hints, found)) return error;
  addrinfo* last = *found;
  while (last->ai_next) last = last->ai_next;
  return real("127.0.0.1", service, hints, &last->ai_next);
}

namespace spes::trainer {
namespace {

// Swallows whatever is sent to 127.0.0.2 at this port.
class Silent {
 public:
  explicit Silent(std::uint16_t port) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    inet_pton(AF_INET, "127.0.0.2", &at.sin_addr);
    for (int i = 0; i < 4; ++i) {
      fds_.push_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    }
    const auto* address = reinterpret_cast<const sockaddr*>(&at);
    EXPECT_EQ(bind(fds_[0], address, sizeof(at)), 0);
    EXPECT_EQ(listen(fds_[0], 0), 0);
    for (int i = 1; i < 4; ++i) connect(fds_[static_cast<std::size_t>(i)], address, sizeof(at));
  }
  ~Silent() {
    for (const int fd : fds_) close(fd);
  }

 private:
  std::vector<int> fds_;
};

TEST(Dial, AddressesOfANameAreTriedUntilOneAnswers) {
  TestServer server(TestServer::Config(1), TableOf(1, 1));
  const std::string port = server.address().substr(server.address().rfind(':') + 1);
  const Silent silent(static_cast<std::uint16_t>(std::stoi(port)));
  auto config = TestNode::Config("two.test:" + port, 0);
  config.options.dead_after = Seconds(5);  // longer than handshake_time, as by default
  ComputePool pool(1);
  MemoryRecorder recorder;
  std::atomic<bool> stop = false;
  std::string why;
  int tries = 0;
  const auto client =
      JoinTcp(config, TableOf(1, 1), pool, recorder, stop, [&](const std::string& text) {
        why = text;
        if (++tries == 2) stop = true;
      });
  EXPECT_NE(client, nullptr) << tries << " tries, the last: " << why;
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
  const std::string port = first.address().substr(first.address().rfind(':') + 1);
  const Silent taken(static_cast<std::uint16_t>(std::stoi(port)));
  config.address = "two.test:" + port;
  EXPECT_THROW(TestServer(config, TableOf(1, 1)), std::invalid_argument);
  first.Halt();
  first.runtime.reset();
  TestServer second(config, TableOf(1, 1));
  TestNode node(TestNode::Config("127.0.0.1:" + port, 0), TableOf(1, 1));
}

}  // namespace
}  // namespace spes::trainer
