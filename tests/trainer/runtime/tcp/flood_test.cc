// Who is not let in, or talks without end, takes no more of the coordinator than there is for that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "tests/trainer/runtime/tcp/endpoint.h"
#include "tests/trainer/runtime/tcp/key_ring.h"
#include "tests/trainer/runtime/tcp/payloads.h"
#include "tests/trainer/runtime/tcp/raw_socket.h"
#include "trainer/runtime/tcp/gates.h"
#include "trainer/runtime/tcp/link.h"
#include "trainer/runtime/tcp/member_events.h"
#include "trainer/runtime/tcp/refusals.h"

namespace spes::trainer {
namespace {

std::ptrdiff_t Descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

// The most connections that the coordinator has at one time while 400 strangers say this.
std::ptrdiff_t MostHeld(TcpServeConfig config, const std::string& said) {
  TestServer server(std::move(config), TableOf(1, 1));
  const std::ptrdiff_t before = Descriptors();
  std::vector<std::unique_ptr<RawSocket>> flood;
  std::ptrdiff_t most = 0;
  for (int i = 0; i < 400; ++i) {
    flood.push_back(std::make_unique<RawSocket>(server.address()));
    flood.back()->Say(said);
    if (i % 20 == 0) most = std::max(most, Descriptors() - before - std::ssize(flood));
  }
  return most;
}

TEST(Flood, StrangersHoldNoMoreConnectionsThanThereAreGates) {
  std::string other_version = FrameBytes(FrameType::kHello, 0, "");
  other_version[4] = 9;
  // 16 gates of one address, and what is being accepted.
  EXPECT_LE(MostHeld(TestServer::Config(2), other_version), 40);
  auto config = TestServer::Config(2);
  config.security = KeyRing::Coordinator("a secret of a group");
  EXPECT_LE(MostHeld(config, "GET / HTTP/1.1\r\n\r\n"), 40);
}

TEST(Flood, OfDifferentNonsenseIsNoFloodOfRows) {
  TestServer server(TestServer::Config(2), TableOf(1, 1));
  for (int i = 0; i < 200; ++i) {
    RawSocket socket(server.address());
    std::string frame = FrameBytes(FrameType::kHello, 0, "");
    const std::uint64_t length = 5000 + static_cast<std::uint64_t>(i);
    std::memcpy(frame.data() + 16, &length, 8);
    socket.Say(frame);
    socket.Closed(1);
  }
  EXPECT_LE(server.Events("dropped").size(), 20u);
}

TEST(Flood, OfManyAddressesIsNoFloodOfRows) {
  MemoryRecorder recorder;
  Refusals refusals(recorder);
  const auto flood = [&](sim::Time now) {
    for (int i = 0; i < 5000; ++i) {
      refusals.Record(now, Refusals::Kind::kNonsense, -1, "host " + std::to_string(i), "x");
    }
  };
  flood(sim::Time{0});
  EXPECT_EQ(recorder.events.size(), 64u);
  flood(std::chrono::seconds(11));
  ASSERT_EQ(recorder.events.size(), 128u);
  EXPECT_THAT(recorder.events[64].detail, testing::HasSubstr("and 4936 of many addresses"));
}

TEST(Flood, OfAMembersEventsIsNoFloodOfRows) {
  MemoryRecorder recorder;
  MemberEvents events({&recorder});
  const auto flood = [&](double now_s, std::int32_t node, const std::string& kind) {
    for (int i = 0; i < 500; ++i) {
      events.Record(analysis::EventRecord{now_s, node, kind, std::to_string(i)});
    }
  };
  flood(0, 1, "reject");
  EXPECT_EQ(recorder.events.size(), 64u);
  flood(0, 2, "reject");  // others are heard
  EXPECT_EQ(recorder.events.size(), 128u);
  flood(0, 1, "late");
  EXPECT_EQ(recorder.events.size(), 192u);
  flood(11, 1, "reject");
  ASSERT_EQ(recorder.events.size(), 256u);
  EXPECT_EQ(recorder.events[192].detail, "0 (and 436 more since the last word of it)");
  EXPECT_EQ(recorder.events[193].detail, "1");
  flood(11, kCoordinator, "round");
  EXPECT_EQ(recorder.events.size(), 756u);
}

TEST(Flood, OfStrangersFromManyAddressesLeavesRoomForOthers) {
  auto serve = TestServer::Config(1);
  serve.options.handshake_time = Seconds(600);  // nobody goes by itself
  TestServer server(serve, TableOf(1, 1));
  std::vector<std::unique_ptr<RawSocket>> flood;
  for (int i = 0; i < Gates::kMost; ++i) {
    const std::string from = "127.0.1." + std::to_string(1 + i / Gates::kMostOfOne);
    flood.push_back(std::make_unique<RawSocket>(server.address(), from));
  }
  ComputePool pool(1);
  MemoryRecorder recorder;
  std::atomic<bool> stop = false;
  int tries = 0;
  const auto client = JoinTcp(TestNode::Config(server.address(), 0), TableOf(1, 1), pool, recorder,
                              stop, [&](const std::string&) { stop = ++tries == 3; });
  EXPECT_NE(client, nullptr);
}

// Says as node 1 that it goes, and stays.
std::unique_ptr<RawSocket> Leaver(TestServer& server, std::size_t messages) {
  auto socket = std::make_unique<RawSocket>(server.address());
  EXPECT_TRUE(socket->ShakeHands(GoodHello(1)));
  socket->Say(
      FrameBytes(FrameType::kMessage, 1, EncodeMessage(Leave{"tired"}, *TableOf(1, 1)).head));
  EXPECT_TRUE(server.UntilGot(messages));
  return socket;
}

TEST(Flood, OfAMemberThatLeavesOverAndOverIsOneSession) {
  TestServer server(TestServer::Config(2), TableOf(1, 1));
  std::unique_ptr<RawSocket> last = Leaver(server, 1);
  for (std::size_t i = 2; i < 6; ++i) {
    auto next = Leaver(server, i);
    EXPECT_TRUE(last->Closed(3)) << i;  // by itself it would be after 5 s
    last = std::move(next);
  }
}

TEST(Flood, WhoIsLeavingCountsForItsAddress) {
  auto serve = TestServer::Config(2);
  serve.options.connections_per_address = 1;
  TestServer server(serve, TableOf(1, 1));
  const auto leaver = Leaver(server, 1);
  RawSocket other(server.address());
  EXPECT_FALSE(other.ShakeHands(GoodHello(0)));
}

TEST(Flood, OfAMemberWaitsInItsSocketNotInMemory) {
  auto config = TestServer::Config(2);
  config.options.give_up_after = Seconds(600);  // it has no connection for parameters
  TestServer server(config, TableOf(1, 1));
  const std::string head = EncodeMessage(Applied{}, *TableOf(1, 1)).head;
  std::string said;
  constexpr std::size_t kMessages = 100'000;
  for (std::size_t i = 1; i <= kMessages; ++i) said += FrameBytes(FrameType::kMessage, i, head);
  RawSocket member(server.address());
  const auto welcome = member.ShakeHands(GoodHello(1));
  ASSERT_TRUE(welcome);
  const std::int64_t before = server.StatusOf(1).received_bytes;
  std::thread says([&] { member.Say(said); });
  std::thread hears([&] { member.Hear(1); });
  const auto frame_bytes = static_cast<std::int64_t>(said.size() / kMessages);
  std::int64_t most = 0;
  for (std::int64_t handled = 0; handled < static_cast<std::int64_t>(kMessages);) {
    // Read off the socket, and not yet seen by the protocol.
    const std::int64_t read = (server.StatusOf(1).received_bytes - before) / frame_bytes;
    ASSERT_TRUE(server.Until([&] {
      handled = std::ssize(server.got);
      return true;
    }));
    most = std::max(most, read - handled);
  }
  says.join();
  hears.join();
  EXPECT_LE(most, 100);
}

TEST(Flood, WhatIsNotAcknowledgedEndsTheSessionBeforeItFillsTheMemory) {
  TestServer server(TestServer::Config(2), TableOf(1, 1));
  RawSocket member(server.address());
  ASSERT_TRUE(member.ShakeHands(GoodHello(1)));
  std::thread hears([&] { member.Hear(1); });
  server.Get([&] {
    for (int i = 0; i < 100; ++i) server.runtime->Send(1, UpdateOf(*TableOf(1, 1), i, 1), 0);
  });
  ASSERT_TRUE(server.Until([&] { return !server.lost.empty(); }));
  EXPECT_THAT(server.lost[0].second, testing::HasSubstr("more waits for it"));
  hears.join();
}

TEST(Flood, WhoNeverAcknowledgesIsGivenUp) {
  auto config = TestServer::Config(2);
  config.options.give_up_after = Seconds(0.5);
  config.options.chunk_bytes = 1 << 10;
  TestServer server(config, TableOf(1, 1));
  RawSocket member(server.address());
  Hello hello = GoodHello(1);
  const auto welcome = member.ShakeHands(hello);
  ASSERT_TRUE(welcome);
  hello.session = welcome->session;
  hello.role = ConnectionRole::kBulk;
  RawSocket bulk(server.address());
  ASSERT_TRUE(bulk.ShakeHands(hello));
  server.Get([&] { server.runtime->Send(1, Applied{}, 0); });
  const std::string beat = FrameBytes(FrameType::kBeat, 0, std::string(kBeatBytes, '\0'));
  for (int i = 0; i < 600 && server.Events("dropped").empty(); ++i) {
    member.Say(beat);
    bulk.Say(beat);
  }
  EXPECT_THAT(server.Events("dropped"),
              testing::ElementsAre(testing::HasSubstr("acknowledged nothing")));
}

}  // namespace
}  // namespace spes::trainer
