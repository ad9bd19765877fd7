// Who is given which number.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "tests/trainer/runtime/tcp/payloads.h"
#include "tests/trainer/runtime/tcp/raw_socket.h"
#include "trainer/runtime/tcp/roster.h"

namespace spes::trainer {
namespace {

constexpr double kKeep = 60;  // s

class RosterTest : public testing::Test, public Session::Host {
 protected:
  // A session of the node, without a connection.
  void BeginAway(NodeId node) {
    Session::Setup setup;
    FillRandom(setup.id);
    setup.node = node;
    setup.chunk_bytes = setup.other_chunk_bytes = kMinChunkBytes;
    roster.Add(std::make_shared<Session>(setup, TableOf(1, 1), loop, *this));
  }
  // The number that is given; otherwise why not.
  std::variant<NodeId, Refuse> Ask(NodeId wanted, bool or_any) {
    Request request;
    request.hello = GoodHello(wanted);
    request.hello.or_any = or_any;
    const auto given = roster.Judge(request, request.hello.clock_us);
    if (const auto* refuse = std::get_if<Refuse>(&given)) return *refuse;
    return std::get<NodeId>(given);
  }
  std::optional<NodeId> Given(NodeId wanted, bool or_any = false) {
    const auto answer = Ask(wanted, or_any);
    const auto* node = std::get_if<NodeId>(&answer);
    return node ? std::optional(*node) : std::nullopt;
  }

  void OnArrival(Session&, Message) override {}
  void OnConnectionClosed(Session&, const Connection&, ConnectionRole,
                          const std::string&) override {}
  void OnBye(Session&, const Bye&) override {}
  void OnBroken(Session&, const std::string&) override {}
  void OnNoRoom(Session&, const std::string&) override {}

  ComputePool pool{1};
  Loop loop{pool};
  Roster roster{{2, nullptr, false, 300, kKeep}, {"1234", "", nullptr}};
};

TEST_F(RosterTest, WhoIsKeptOutIsGivenNoOtherNumberInstead) {
  EXPECT_EQ(Given(1, true), 1);
  roster.Ban(1, "it sends noise");
  const auto answer = Ask(1, true);
  ASSERT_TRUE(std::holds_alternative<Refuse>(answer));
  const Refuse& refuse = std::get<Refuse>(answer);
  EXPECT_EQ(refuse.code, RefuseCode::kBanned);
  EXPECT_TRUE(refuse.permanent);
  EXPECT_EQ(refuse.text, "node 1 is kept out: it sends noise");
  EXPECT_EQ(Given(7, true), 0);  // others are, and not its number
}

TEST_F(RosterTest, ANumberIsKeptForItsNodeAsLongAsItsSessionWouldLive) {
  BeginAway(0);
  BeginAway(1);
  roster.Tick(kKeep / 2);
  EXPECT_EQ(Given(kAnyNode), std::nullopt);
  EXPECT_EQ(Given(1), 1);  // itself
  BeginAway(1);
  roster.Tick(kKeep / 2);
  EXPECT_EQ(Given(kAnyNode), 0);
  roster.Tick(kKeep / 2);
  EXPECT_EQ(Given(kAnyNode), 0);  // has been away longest
}

}  // namespace
}  // namespace spes::trainer
