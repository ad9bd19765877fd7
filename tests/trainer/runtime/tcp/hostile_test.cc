// Who sends garbage, too much, too slowly, or lies is dropped with a reason; the others go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/trainer/runtime/tcp/endpoint.h"
#include "tests/trainer/runtime/tcp/payloads.h"
#include "tests/trainer/runtime/tcp/raw_socket.h"
#include "trainer/runtime/tcp/link.h"

namespace spes::trainer {
namespace {

using testing::Contains;
using testing::HasSubstr;

// A coordinator with a node that behaves, as node 0.
class Hostile : public testing::Test {
 protected:
  Hostile() : server(TestServer::Config(3), table), good(GoodConfig(), table) {}
  ~Hostile() override {
    // The good node was not disturbed.
    good.Send(kCoordinator, Applied{99, 0, 0});
    EXPECT_TRUE(server.Until([&] {
      return std::ranges::any_of(
          server.got, [](const auto& got) { return got.first == 0 && RoundOf(got.second) == 99; });
    }));
    EXPECT_THAT(good.Events("disconnected"), testing::IsEmpty());
  }
  TcpJoinConfig GoodConfig() { return TestNode::Config(server.address(), 0); }

  // A connection that was let in as node 1, for control or, with `index`, for parameters.
  std::unique_ptr<RawSocket> LetIn(std::optional<int> index = {}) {
    auto socket = std::make_unique<RawSocket>(server.address());
    Hello hello = GoodHello(1);
    if (index) {
      hello.session = session;
      hello.role = ConnectionRole::kBulk;
      hello.index = static_cast<std::uint16_t>(*index);
    }
    const auto welcome = socket->ShakeHands(hello);
    EXPECT_TRUE(welcome);
    if (welcome) session = welcome->session;
    return socket;
  }
  void ExpectEvent(const std::string& kind, const std::string& text) {
    ASSERT_TRUE(server.UntilEvent(kind)) << text;
    EXPECT_THAT(server.Events(kind), Contains(HasSubstr(text)));
  }
  void ExpectDropped(const std::string& said, const std::string& reason) {
    RawSocket socket(server.address());
    socket.Say(said);
    EXPECT_EQ(socket.Hear(), "") << reason;
    ExpectEvent("dropped", reason);
  }

  std::shared_ptr<const BlockTable> table = TableOf(1, 100'000);
  TestServer server;
  TestNode good;
  SessionId session = kNoSession;
};

TEST_F(Hostile, Garbage) {
  ExpectDropped(std::string(100, 'x'), "what comes is no frame of this program");
}

TEST_F(Hostile, ABrowser) {
  ExpectDropped("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", "no frame of this program");
}

TEST_F(Hostile, AnotherVersionIsToldThatItIsNotLetInAndByWhichVersion) {
  std::string frame = FrameBytes(FrameType::kHello, 0, Encode(GoodHello(1)));
  frame[4] = 9;
  RawSocket socket(server.address());
  socket.Say(frame);
  FrameType type;
  const auto answer = socket.Frame(&type);
  ASSERT_TRUE(answer);
  EXPECT_EQ(type, FrameType::kRefuse);
  EXPECT_EQ(DecodeRefuse(*answer).code, RefuseCode::kNotLetIn);
  ExpectEvent("dropped", "speaks version 9 of the wire format");
}

TEST_F(Hostile, AFrameThatIsTooLong) {
  std::string frame = FrameBytes(FrameType::kHello, 0, std::string(2000, 'x'));
  ExpectDropped(frame, "a frame of 2000 bytes, where at most 1024 are allowed");
}

TEST_F(Hostile, AFrameOfAnotherPlace) {
  ExpectDropped(FrameBytes(FrameType::kMessage, 1, "x"), "a type that has no place here");
}

TEST_F(Hostile, AChecksumThatIsWrong) {
  std::string frame = FrameBytes(FrameType::kHello, 0, Encode(GoodHello(1)));
  frame.back() = static_cast<char>(frame.back() ^ 1);
  ExpectDropped(frame, "a frame's checksum does not match");
}

TEST_F(Hostile, WhoSaysNothingIsDroppedInTime) {
  RawSocket silent(server.address());
  RawSocket slow(server.address());
  slow.Say(FrameBytes(FrameType::kHello, 0, Encode(GoodHello(1))).substr(0, 50));
  EXPECT_TRUE(silent.Closed());
  EXPECT_TRUE(slow.Closed());
  ExpectEvent("dropped", "it took too long to be let in");
}

TEST_F(Hostile, AFloodOfConnectionsIsKeptOutAndCountedAndOthersGetIn) {
  std::vector<std::unique_ptr<RawSocket>> flood;
  for (int i = 0; i < 60; ++i) flood.push_back(std::make_unique<RawSocket>(server.address()));
  ExpectEvent("dropped", "too many connections that are not let in yet");
  TestNode late(TestNode::Config(server.address(), 2), table);  // tries until there is room
  flood.clear();
  late.Send(kCoordinator, Applied{});
  EXPECT_TRUE(server.UntilGot(1));
  EXPECT_LE(server.Events("dropped").size(), 4u);
}

TEST_F(Hostile, TooManyConnectionsOfAnAddressThatWereLetIn) {
  auto serve = TestServer::Config(2);
  serve.options.connections_per_address = 1;
  TestServer small(serve, table);
  TestNode node(TestNode::Config(small.address(), 0), table);  // with one of the three it wants
  ComputePool pool(1);
  MemoryRecorder recorder;
  std::atomic<bool> stop = false;
  std::string why;
  EXPECT_EQ(JoinTcp(TestNode::Config(small.address(), 1), table, pool, recorder, stop,
                    [&](const std::string& text) {
                      why = text;
                      stop = true;
                    }),
            nullptr);
  EXPECT_THAT(why, HasSubstr("takes 1 connections from one address"));
}

TEST_F(Hostile, AMessageThatIsNoneEndsTheSession) {
  const auto socket = LetIn();
  socket->Say(FrameBytes(FrameType::kMessage, 1, "\x63nonsense"));
  ASSERT_TRUE(server.Until([&] { return !server.lost.empty(); }));
  EXPECT_EQ(server.lost[0].first, 1);
  EXPECT_THAT(server.lost[0].second, HasSubstr("unknown kind"));
  EXPECT_TRUE(socket->Closed());
}

TEST_F(Hostile, AMessageTooFarAheadEndsTheSession) {
  const auto socket = LetIn();
  socket->Say(FrameBytes(FrameType::kMessage, 2, EncodeMessage(Applied{}, *table).head));
  ASSERT_TRUE(server.Until([&] { return !server.lost.empty(); }));
  EXPECT_THAT(server.lost[0].second, HasSubstr("a message is missing"));
}

TEST_F(Hostile, ParametersInAMessageWithoutEndTheSessionBeforeMemoryIsAskedFor) {
  const auto socket = LetIn();
  socket->Say(
      FrameBytes(FrameType::kMessage, 1, EncodeMessage(OfferOf(*table, 1, 1), *table).head));
  ASSERT_TRUE(server.Until([&] { return !server.lost.empty(); }));
  EXPECT_THAT(server.lost[0].second, HasSubstr("comes as one without"));
}

TEST_F(Hostile, AnAcknowledgementOfWhatWasNeverSentEndsTheSession) {
  const auto socket = LetIn();
  socket->Say(FrameBytes(FrameType::kAck, 0, Encode(Arrived{5, 0, false, {}})));
  ASSERT_TRUE(server.Until([&] { return !server.lost.empty(); }));
  EXPECT_THAT(server.lost[0].second, HasSubstr("never sent"));
}

TEST_F(Hostile, ATransferAcknowledgedWhileItIsStillWrittenDoesNoHarm) {
  const auto control = LetIn();
  const auto bulk = LetIn(0);
  control->Say(FrameBytes(FrameType::kAck, 0, Encode(Arrived{})));
  server.Send(1, UpdateOf(*table, 1, 1));
  FrameType type = FrameType::kBeat;
  while (type != FrameType::kBegin) ASSERT_TRUE(control->Frame(&type));
  control->Say(FrameBytes(FrameType::kAck, 0, Encode(Arrived{1, 1, true, {}})));
  EXPECT_TRUE(server.Until([&] { return server.delivered == 1; }));
}

TEST_F(Hostile, FiguresThatCannotBeEndTheSessionAndAreNotRecorded) {
  const auto control = LetIn();
  const auto bulk = LetIn(0);
  const OutgoingMessage offer = EncodeMessage(OfferOf(*table, 1, 1), *table);
  control->Say(FrameBytes(FrameType::kBegin, 1, offer.head));
  const auto* values = reinterpret_cast<const char*>(offer.payload[0].data());
  const auto chunk = static_cast<std::size_t>(QuickOptions().chunk_bytes);
  for (std::size_t at = 0; at < offer.payload[0].size(); at += chunk) {
    const std::size_t size = std::min(chunk, offer.payload[0].size() - at);
    const std::uint64_t offset = at;
    bulk->Say(FrameBytes(
        FrameType::kChunk, 1,
        std::string(reinterpret_cast<const char*>(&offset), 8) + std::string(values + at, size)));
  }
  ASSERT_TRUE(server.UntilGot(1));
  TransferFigures figures;
  figures.wire_bytes = -5;
  control->Say(FrameBytes(FrameType::kAck, 1, Encode(figures)));
  ASSERT_TRUE(server.Until([&] { return !server.lost.empty(); }));
  server.Get([&] {
    ASSERT_EQ(server.recorder.flows.size(), 1u);
    EXPECT_EQ(server.recorder.flows[0].wire_bytes, 0);
  });
}

TEST_F(Hostile, ATextThatNobodyWouldReadEndsTheSession) {
  const auto control = LetIn();
  const auto said = [&](std::uint64_t number, std::size_t characters) {
    Join join;
    join.scenario_hash = std::string(characters, 'x');
    control->Say(FrameBytes(FrameType::kMessage, number, EncodeMessage(join, *table).head));
  };
  said(1, 1024);
  said(2, 1025);
  ExpectEvent("dropped", "too long");
  EXPECT_EQ(server.got.size(), 1u);
}

TEST_F(Hostile, ATimeOfABeatMayBeAnything) {
  RawSocket control(server.address());
  Hello hello = GoodHello(1);
  hello.session = control.ShakeHands(hello)->session;
  hello.role = ConnectionRole::kBeat;
  RawSocket beat(server.address());
  ASSERT_TRUE(beat.ShakeHands(hello));
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  beat.Say(FrameBytes(FrameType::kBeat, 0, Encode(Beat{kLeast, kLeast, kLeast})));
  beat.Say(FrameBytes(FrameType::kBeat, 0, Encode(Beat{1, -1, ~kLeast})));
  control.Say(FrameBytes(FrameType::kMessage, 1, EncodeMessage(Applied{}, *table).head));
  EXPECT_TRUE(server.UntilGot(1));
}

TEST_F(Hostile, WhoWaitsForANodeThatIsAnotherProcesssIsNotKeptForever) {
  RawSocket member(server.address());
  Hello hello = GoodHello(1);
  hello.beat_ms = 3'600'000;  // nothing needs to be heard of it for two hours
  ASSERT_TRUE(member.ShakeHands(hello));
  RawSocket other(server.address());
  EXPECT_FALSE(other.ShakeHands(GoodHello(1)));
  ExpectEvent("refused", "another process may have the node still");
}

TEST_F(Hostile, AChunkThatIsNoneOfItsTransferBreaksItsConnection) {
  const auto control = LetIn();
  const auto bulk = LetIn(0);
  const OutgoingMessage offer = EncodeMessage(OfferOf(*table, 1, 1), *table);
  control->Say(FrameBytes(FrameType::kBegin, 1, offer.head));
  bulk->Say(FrameBytes(FrameType::kChunk, 1, std::string(8, '\1') + "abc"));
  EXPECT_TRUE(bulk->Closed());
  ExpectEvent("disconnected", "a chunk that is none of its transfer");
}

TEST_F(Hostile, AChunkOfATransferThatNeverComesBreaksItsConnection) {
  const auto control = LetIn();
  const auto bulk = LetIn(0);
  bulk->Say(FrameBytes(FrameType::kChunk, 7, std::string(8, '\0') + "abc"));
  // The control connection is alive meanwhile.
  for (int i = 0; i < 60 && !bulk->Closed(0.15); ++i) {
    control->Say(FrameBytes(FrameType::kBeat, 0, Encode(Beat{})));
  }
  ExpectEvent("disconnected", "a chunk of a transfer that was not announced");
}

TEST_F(Hostile, AFrameThatComesTooSlowlyBreaksItsConnection) {
  const auto control = LetIn();
  // 4 kB are given two seconds and a half.
  const std::string frame = FrameBytes(FrameType::kMessage, 1, std::string(4000, 'x'));
  control->Say(frame.substr(0, 100));
  for (std::size_t at = 100; at < 200 && !control->Closed(0.1); ++at) {
    control->Say(frame.substr(at, 1));
  }
  ExpectEvent("disconnected", "a frame that comes too slowly");
}

TEST_F(Hostile, ASilentConnectionBreaks) {
  const auto control = LetIn();
  EXPECT_TRUE(control->Closed());
  ExpectEvent("disconnected", "nothing has come from it for 2 s");
}

}  // namespace
}  // namespace spes::trainer
