// Connections that break, stall and lie: sessions outlive them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "tests/trainer/runtime/tcp/endpoint.h"
#include "tests/trainer/runtime/tcp/key_ring.h"
#include "tests/trainer/runtime/tcp/payloads.h"
#include "tests/trainer/runtime/tcp/proxy.h"
#include "tests/trainer/wire/samples.h"

namespace spes::trainer {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kPayload = 4LL * 4 * 1'000'000;  // of TheTable's blocks
constexpr int kStreams = 3;
// What may lie in buffers between the two sides when a connection is cut, and is lost with it.
constexpr std::int64_t kOnTheWay = kStreams * (6LL << 20);

std::shared_ptr<const BlockTable> TheTable() { return TableOf(4, 1'000'000); }

// A node behind a proxy. Patient, but for silence: nothing is given up.
class Broken : public testing::Test {
 protected:
  explicit Broken(const std::function<void(TcpServeConfig&, TcpJoinConfig&)>& change = {}) {
    auto serve = TestServer::Config(1);
    auto join = TestNode::Config("", 0);
    serve.options.give_up_after = join.options.give_up_after = Seconds(600);
    serve.options.chunk_bytes = join.options.chunk_bytes = 64 << 10;
    join.options.streams = kStreams;
    if (change) change(serve, join);
    server = std::make_unique<TestServer>(serve, table);
    proxy = std::make_unique<Proxy>(server->address());
    join.address = proxy->address();
    node = std::make_unique<TestNode>(join, table);
    while (proxy->connections() < 2 + join.options.streams) std::this_thread::yield();
    EXPECT_TRUE(server->Until([] { return true; }));
  }
  void ExpectUpload() {
    ASSERT_TRUE(server->UntilGot(1));
    EXPECT_TRUE(Same(offer, server->got[0].second));
    EXPECT_TRUE(node->Until([&] { return node->delivered == 1; }));
  }
  // Nothing has come twice, nobody was given up.
  void ExpectNoMore() {
    node->Send(kCoordinator, Applied{5, 0, 0});
    ASSERT_TRUE(server->UntilGot(2));
    EXPECT_EQ(RoundOf(server->got[1].second), 5);
    EXPECT_EQ(server->got.size(), 2u);
    EXPECT_THAT(server->lost, IsEmpty());
    EXPECT_THAT(node->renewed, IsEmpty());
  }

  std::shared_ptr<const BlockTable> table = TheTable();
  Offer offer = OfferOf(*table, 3, 11);
  std::unique_ptr<TestServer> server;
  std::unique_ptr<Proxy> proxy;
  std::unique_ptr<TestNode> node;
};

class BrokenOfSome : public Broken, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Reconnect, BrokenOfSome, testing::Values(1, 2, 100));

TEST_P(BrokenOfSome, AnUploadGoesOnWhereItWas) {
  proxy->CutAfter(kPayload / 2, GetParam());
  node->Send(kCoordinator, offer);
  ExpectUpload();
  ExpectNoMore();
  // The others may have brought the rest before the node dials again.
  while (proxy->connections() < 2 + kStreams + 1) std::this_thread::yield();
  // Half of it was there already, or on its way.
  EXPECT_LT(proxy->up_bytes(), kPayload + kOnTheWay + (1 << 20));
}

TEST_F(Broken, ADownloadGoesOnWhereItWas) {
  const Update update = UpdateOf(*table, 2, 5);
  server->Get([&] { server->runtime->Send(0, update, 0); });
  while (proxy->down_bytes() < kPayload / 2) std::this_thread::yield();
  proxy->CutAll();
  ASSERT_TRUE(node->UntilGot(1));
  EXPECT_TRUE(Same(update, node->got[0].second));
  EXPECT_LT(proxy->down_bytes(), kPayload + kOnTheWay + (1 << 20));
}

TEST_F(Broken, CutsOverAndOver) {
  node->Send(kCoordinator, offer);
  const Update update = UpdateOf(*table, 2, 5);
  server->Get([&] { server->runtime->Send(0, update, 0); });
  for (int i = 0; i < 8; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(70));
    proxy->CutAll();
    for (int m = 0; m < 3; ++m) {
      node->Get([&] { node->runtime->Send(kCoordinator, Applied{3 * i + m, 0, 0}, 0); });
    }
  }
  ASSERT_TRUE(server->UntilGot(25));
  ASSERT_TRUE(node->UntilGot(1));
  std::vector<std::int32_t> applied, expected;
  int offers = 0;
  for (const auto& [from, message] : server->got) {
    if (std::holds_alternative<Applied>(message)) applied.push_back(RoundOf(message));
    if (std::holds_alternative<Offer>(message)) {
      ++offers;
      EXPECT_TRUE(Same(offer, message));
    }
  }
  for (std::int32_t i = 0; i < 24; ++i) expected.push_back(i);
  EXPECT_EQ(applied, expected);
  EXPECT_EQ(offers, 1);
  EXPECT_TRUE(Same(update, node->got[0].second));
  EXPECT_THAT(server->lost, IsEmpty());
  EXPECT_GE(server->StatusOf(0).reconnects, 1);
}

TEST_F(Broken, ABitThatChangesOnTheWayIsNoticedAndItsChunkSentAgain) {
  proxy->DamageAfter(kPayload / 2);
  node->Send(kCoordinator, offer);
  ExpectUpload();
  ExpectNoMore();
  ASSERT_TRUE(server->UntilEvent("disconnected"));
  EXPECT_THAT(server->Events("disconnected"), Contains(HasSubstr("checksum does not match")));
}

TEST_F(Broken, SilenceOfAllConnectionsIsNoticedOnBothSides) {
  proxy->Hold(true);
  EXPECT_TRUE(server->UntilEvent("disconnected"));
  EXPECT_TRUE(node->UntilEvent("disconnected"));
  EXPECT_THAT(server->Events("disconnected"), Contains(HasSubstr("nothing has come from it")));
  EXPECT_FALSE(server->StatusOf(0).connected);
  proxy->CutAll();
  proxy->Hold(false);
  node->Send(kCoordinator, offer);
  ExpectUpload();
  ExpectNoMore();
  EXPECT_TRUE(server->StatusOf(0).connected);
}

TEST_F(Broken, SilenceOfOneConnectionWithinATransferIsNoticed) {
  node->Send(kCoordinator, offer);
  while (proxy->up_bytes() < kPayload / 4) std::this_thread::yield();
  proxy->HoldBusiest();
  ExpectUpload();
  ExpectNoMore();
}

TEST_F(Broken, WhatIsSentWhileNoConnectionIsThereArrivesLater) {
  proxy->Refuse(true);
  proxy->CutAll();
  EXPECT_TRUE(node->UntilEvent("disconnected"));
  node->Send(kCoordinator, offer);
  node->Get([&] { node->runtime->Send(kCoordinator, Applied{5, 0, 0}, 0); });
  server->Get([&] { server->runtime->Send(0, Reject{RejectReason::kCorrupt, 8, ""}, 0); });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_THAT(node->got, IsEmpty());
  proxy->Refuse(false);
  ASSERT_TRUE(server->UntilGot(2));
  ASSERT_TRUE(node->UntilGot(1));
  EXPECT_THAT(server->lost, IsEmpty());
}

class BrokenWithTls : public Broken {
 protected:
  BrokenWithTls()
      : Broken([](TcpServeConfig& serve, TcpJoinConfig& join) {
          serve.security = KeyRing::Coordinator("t");
          join.security = KeyRing::Node("t");
        }) {}
};

TEST_F(BrokenWithTls, AnUploadGoesOnWhereItWas) {
  proxy->CutAfter(kPayload / 2, 100);
  node->Send(kCoordinator, offer);
  ExpectUpload();
  ExpectNoMore();
  EXPECT_LT(proxy->up_bytes(), kPayload + kOnTheWay + (2 << 20));
}

TEST_F(BrokenWithTls, ABitThatChangesOnTheWayIsNoticed) {
  proxy->DamageAfter(kPayload / 2);
  node->Send(kCoordinator, offer);
  ExpectUpload();
  ExpectNoMore();
}

class BrokenForGood : public Broken {
 protected:
  BrokenForGood()
      : Broken([](TcpServeConfig& serve, TcpJoinConfig& join) {
          serve.options.give_up_after = join.options.give_up_after = Seconds(1);
        }) {}
};

TEST_F(BrokenForGood, ASessionWithoutConnectionsIsGivenUpAndTheNodeBeginsAnew) {
  proxy->Refuse(true);
  proxy->CutAll();
  node->Send(kCoordinator, offer);  // is never delivered
  ASSERT_TRUE(server->Until([&] { return server->lost.size() == 1; }));
  EXPECT_EQ(server->lost[0].first, 0);
  EXPECT_THAT(server->lost[0].second, HasSubstr("nothing has been heard of it for"));
  proxy->Refuse(false);
  ASSERT_TRUE(node->Until([&] { return node->renewed.size() == 1; }));
  EXPECT_THAT(node->renewed[0], HasSubstr("does not know this session"));
  node->Send(kCoordinator, Applied{7, 0, 0});
  ASSERT_TRUE(server->UntilGot(1));
  EXPECT_EQ(RoundOf(server->got[0].second), 7);
  EXPECT_EQ(node->client().node(), 0);
}

TEST_F(BrokenForGood, ATransferThatIsGivenUpHasFailed) {
  proxy->CutAfter(kPayload / 2, 100);
  proxy->Refuse(true);
  node->Send(kCoordinator, offer);
  ASSERT_TRUE(server->Until([&] { return server->lost.size() == 1; }));
  const auto flows = server->Get([&] { return server->recorder.flows; });
  ASSERT_EQ(flows.size(), 1u);
  EXPECT_EQ(flows[0].outcome, "failed");
  EXPECT_EQ(flows[0].message, "offer");
  EXPECT_EQ(flows[0].round, 3);
  EXPECT_GT(flows[0].bytes, 0);
  EXPECT_LT(flows[0].bytes, kPayload);
}

TEST(Reconnect, ARestartedCoordinatorIsMetByTheSameNode) {
  const auto table = TableOf(1, 100);
  auto serve = TestServer::Config(3);
  auto server = std::make_unique<TestServer>(serve, table);
  serve.address = server->address();
  auto join = TestNode::Config(serve.address);
  TestNode other(join, table);  // node 0
  TestNode node(join, table);   // the coordinator has given it node 1
  node.Send(kCoordinator, OfferOf(*table, 1, 1));
  ASSERT_TRUE(server->UntilGot(1));
  server.reset();
  EXPECT_TRUE(node.UntilEvent("disconnected"));
  TestServer again(serve, table);  // on the same port
  again.Get([&] { again.runtime->SetNow(std::chrono::hours(9)); });
  ASSERT_TRUE(node.Until([&] { return node.renewed.size() == 1; }));
  EXPECT_EQ(node.client().node(), 1);
  node.Send(kCoordinator, Applied{6, 0, 0});
  ASSERT_TRUE(again.UntilGot(1));
  EXPECT_EQ(again.got[0].first, 1);
  EXPECT_GE(node.StatusOf(kCoordinator).sent_bytes, 1);
}

TEST(Reconnect, AfterAnOutageAllConnectionsAreThereAtOnce) {
  TestServer server(TestServer::Config(1), TableOf(1, 1));
  Proxy proxy(server.address());
  proxy.Refuse(true);
  auto config = TestNode::Config(proxy.address(), 0);
  config.options.streams = 4;
  std::unique_ptr<TestNode> node;
  std::thread joins([&] { node = std::make_unique<TestNode>(config, TableOf(1, 1)); });
  while (proxy.connections() < 5) std::this_thread::yield();
  proxy.Refuse(false);
  joins.join();
  // The fifth may have been let through. A back-off before each would be 0.8 s at least.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(3);
  while (proxy.connections() < 10 && std::chrono::steady_clock::now() < until) {
    std::this_thread::yield();
  }
  EXPECT_GE(proxy.connections(), 10);
}

TEST(Reconnect, ACoordinatorThatClosesIsWaitedFor) {
  const auto table = TableOf(1, 100);
  auto serve = TestServer::Config(1);
  auto server = std::make_unique<TestServer>(serve, table);
  serve.address = server->address();
  TestNode node(TestNode::Config(serve.address, 0), table);
  server->Finish(Seconds(5));
  server.reset();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  TestServer again(serve, table);
  ASSERT_TRUE(node.Until([&] { return node.renewed.size() == 1; }));
  EXPECT_THAT(node.renewed[0], HasSubstr("the coordinator has closed"));
}

TEST(Reconnect, ANodeDialsForAsLongAsItIsTold) {
  const auto table = TableOf(1, 100);
  auto serve = TestServer::Config(1);
  auto server = std::make_unique<TestServer>(serve, table);
  auto join = TestNode::Config(server->address(), 0);
  join.options.dial_for = Seconds(3);
  TestNode node(join, table);
  // Longer than that with a connection is nothing.
  std::this_thread::sleep_for(std::chrono::milliseconds(3500));
  node.Send(kCoordinator, Applied{1, 0, 0});
  ASSERT_TRUE(server->UntilGot(1));
  server.reset();
  ASSERT_TRUE(node.Until([&] { return node.ended; }));
  ASSERT_TRUE(node.error);
  try {
    std::rethrow_exception(node.error);
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("not reached for 3 s, as long as transport.dial_for says: " +
                          join.address + ": "));
  }
  // Nor does one that was never let in dial longer.
  try {
    TestNode late(join, table);
    ADD_FAILURE() << "nobody is there";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("Connection refused"));
  }
}

TEST(Reconnect, WhoSaysGoodbyeDoesNotFailForWantOfACoordinator) {
  const auto table = TableOf(1, 100);
  auto server = std::make_unique<TestServer>(TestServer::Config(1), table);
  auto join = TestNode::Config(server->address(), 0);
  join.options.dial_for = Seconds(2);
  TestNode node(join, table);
  server.reset();
  node.Send(kCoordinator, Applied{1, 0, 0});
  EXPECT_NO_THROW(node.Finish(Seconds(3)));
  EXPECT_FALSE(node.error);
}

TEST(Reconnect, ANodeThatDiedIsReplacedAtOnce) {
  const auto table = TableOf(1, 100);
  TestServer server(TestServer::Config(1), table);
  auto node = std::make_unique<TestNode>(TestNode::Config(server.address(), 0), table);
  node.reset();  // without a word
  TestNode again(TestNode::Config(server.address(), 0), table);
  ASSERT_TRUE(server.Until([&] { return server.lost.size() == 1; }));
  again.Send(kCoordinator, Applied{1, 0, 0});
  ASSERT_TRUE(server.UntilGot(1));
}

TEST(Reconnect, ANodeWhoseMachineDiedIsReplacedOnceItIsClear) {
  const auto table = TableOf(1, 100);
  auto serve = TestServer::Config(1);
  serve.options.dead_after = Seconds(60);
  serve.options.handshake_time = Seconds(20);
  TestServer server(serve, table);
  Proxy proxy(server.address());
  auto join = TestNode::Config(proxy.address(), 0);
  TestNode dead(join, table);
  while (proxy.connections() < 3) std::this_thread::yield();
  proxy.Hold(true);
  join.address = server.address();
  join.options.handshake_time = Seconds(20);
  TestNode again(join, table);
  EXPECT_EQ(server.lost.size(), 1u);
  again.Send(kCoordinator, Applied{1, 0, 0});
  ASSERT_TRUE(server.UntilGot(1));
}

TEST(Reconnect, ANodeMayBeStartedBeforeItsCoordinator) {
  const auto table = TableOf(1, 100);
  auto serve = TestServer::Config(1);
  {
    TestServer only_for_its_port(serve, table);
    serve.address = only_for_its_port.address();
  }
  std::unique_ptr<TestServer> server;
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    server = std::make_unique<TestServer>(serve, table);
  });
  TestNode node(TestNode::Config(serve.address, 0), table);
  later.join();
  EXPECT_THAT(node.waited, Contains(HasSubstr("refused")));
}

}  // namespace
}  // namespace spes::trainer
