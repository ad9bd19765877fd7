// Messages over real sockets of this machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <thread>

#include "tests/trainer/runtime/tcp/endpoint.h"
#include "tests/trainer/runtime/tcp/key_ring.h"
#include "tests/trainer/runtime/tcp/payloads.h"
#include "tests/trainer/wire/samples.h"

namespace spes::trainer {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Security {
  const char* name;
  TcpSecurity coordinator, node;
  friend void PrintTo(const Security& s, std::ostream* out) { *out << s.name; }
};

class EverySecurity : public testing::TestWithParam<Security> {
 protected:
  TcpServeConfig ServeConfig(int nodes) {
    auto config = TestServer::Config(nodes);
    config.security = GetParam().coordinator;
    return config;
  }
  TcpJoinConfig JoinConfig(const TestServer& server, NodeId node) {
    auto config = TestNode::Config(server.address(), node);
    config.security = GetParam().node;
    return config;
  }
};

INSTANTIATE_TEST_SUITE_P(TcpRuntime, EverySecurity,
                         testing::Values(Security{"None", NoTls(), NoTls()},
                                         Security{"Token", NoTls("secret"), NoTls("secret")},
                                         Security{"TlsAndToken", KeyRing::Coordinator("secret"),
                                                  KeyRing::Node("secret")},
                                         Security{"MutualTls", KeyRing::MutualCoordinator(),
                                                  KeyRing::MutualNode(0)}),
                         [](const auto& info) { return info.param.name; });

TEST_P(EverySecurity, EveryKindOfMessageArrivesAsItWasBothWays) {
  const auto table = SampleTable(DType::kFloat32);
  TestServer server(ServeConfig(1), table);
  TestNode node(JoinConfig(server, 0), table);
  std::vector<Sample> samples = SampleMessages(DType::kFloat32);
  std::erase_if(samples, [](const Sample& s) { return std::holds_alternative<Leave>(s.message); });
  std::size_t count = 0;
  for (const Sample& sample : samples) {
    ++count;
    node.Send(kCoordinator, sample.message);
    ASSERT_TRUE(server.UntilGot(count)) << sample.name;
    EXPECT_EQ(server.got.back().first, 0);
    EXPECT_TRUE(Same(sample.message, server.got.back().second)) << sample.name;
    server.Send(0, sample.message);
    ASSERT_TRUE(node.UntilGot(count)) << sample.name;
    EXPECT_EQ(node.got.back().first, kCoordinator);
    EXPECT_TRUE(Same(sample.message, node.got.back().second)) << sample.name;
  }
  const int sent = static_cast<int>(count);
  EXPECT_TRUE(server.Until([&] { return server.delivered == sent; }));
  EXPECT_TRUE(node.Until([&] { return node.delivered == sent; }));
}

TEST_P(EverySecurity, ParametersCrossSeveralConnectionsWhole) {
  const auto table = TableOf(5, 400'003);  // 8 MB, no multiple of anything
  auto serve = ServeConfig(1);
  TestServer server(serve, table);
  auto join = JoinConfig(server, 0);
  join.options.streams = 3;
  join.options.chunk_bytes = 10'000;  // each side its own
  TestNode node(join, table);
  const Offer offer = OfferOf(*table, 1, 7);
  const Update update = UpdateOf(*table, 1, 8);
  node.Send(kCoordinator, offer);
  server.Send(0, update);
  ASSERT_TRUE(server.UntilGot(1));
  ASSERT_TRUE(node.UntilGot(1));
  EXPECT_TRUE(Same(offer, server.got[0].second));
  EXPECT_TRUE(Same(update, node.got[0].second));
}

TEST(TcpRuntime, StepsOfAnOfferHaveTheirNodeAndRound) {
  const auto table = TableOf(1, 10);
  TestServer server(TestServer::Config(3), table);
  TestNode node(TestNode::Config(server.address(), 2), table);
  node.Send(kCoordinator, OfferOf(*table, 9, 1));
  ASSERT_TRUE(server.UntilGot(1));
  const auto& step = std::get<Offer>(server.got[0].second).steps.at(0);
  EXPECT_EQ(step.node, 2);
  EXPECT_EQ(step.round, 9);
}

TEST(TcpRuntime, PayloadsOfNoAndOfOneElement) {
  for (const std::int64_t floats : {0, 1}) {
    const auto table = TableOf(1, floats);
    TestServer server(TestServer::Config(1), table);
    TestNode node(TestNode::Config(server.address(), 0), table);
    Offer nothing = OfferOf(*table, 1, 1);
    nothing.blocks.clear();
    node.Send(kCoordinator, nothing);
    node.Send(kCoordinator, OfferOf(*table, 2, 1));
    ASSERT_TRUE(server.UntilGot(2)) << floats;
    EXPECT_TRUE(Same(nothing, server.got[0].second)) << floats;
    EXPECT_TRUE(Same(OfferOf(*table, 2, 1), server.got[1].second)) << floats;
    EXPECT_TRUE(node.Until([&] { return node.delivered == 2; }));
  }
}

TEST(TcpRuntime, ParametersKeepTheirOrderAndOthersOvertakeThem) {
  const auto table = TableOf(4, 2'000'000);  // 32 MB
  TestServer server(TestServer::Config(1), table);
  auto join = TestNode::Config(server.address(), 0);
  join.options.streams = 4;
  TestNode node(join, table);
  const Update large = UpdateOf(*table, 1, 5);
  server.Get([&] {
    server.runtime->Send(0, large, 0);
    for (Version v = 2; v < 6; ++v) {
      Update empty;
      empty.version = v;
      server.runtime->Send(0, empty, 0);
    }
    server.runtime->Send(0, Reject{RejectReason::kCorrupt, 17, "short"}, 0);
  });
  ASSERT_TRUE(node.UntilGot(6));
  std::vector<std::int32_t> order;
  for (const auto& [from, message] : node.got) order.push_back(RoundOf(message));
  EXPECT_THAT(order, ElementsAre(17, 1, 2, 3, 4, 5));
}

TEST(TcpRuntime, ManyNodesAtOnceEachWithItsOwn) {
  const auto table = TableOf(2, 50'000);
  constexpr int kNodes = 12;
  TestServer server(TestServer::Config(kNodes), table);
  std::vector<std::unique_ptr<TestNode>> nodes(kNodes);
  std::vector<std::thread> threads;
  for (NodeId n = 0; n < kNodes; ++n) {
    threads.emplace_back([&, n] {
      auto join = TestNode::Config(server.address(), n);
      join.options.streams = 1 + n % 3;
      nodes[static_cast<std::size_t>(n)] = std::make_unique<TestNode>(join, table);
      nodes[static_cast<std::size_t>(n)]->Send(kCoordinator,
                                               OfferOf(*table, 1, static_cast<std::uint64_t>(n)));
    });
  }
  for (auto& thread : threads) thread.join();
  ASSERT_TRUE(server.UntilGot(kNodes));
  for (const auto& [from, message] : server.got) {
    EXPECT_TRUE(Same(OfferOf(*table, 1, static_cast<std::uint64_t>(from)), message)) << from;
  }
  for (NodeId n = 0; n < kNodes; ++n) server.Send(n, UpdateOf(*table, 1, 100));
  for (auto& node : nodes) {
    ASSERT_TRUE(node->UntilGot(1));
    EXPECT_TRUE(Same(UpdateOf(*table, 1, 100), node->got[0].second));
  }
}

TEST(TcpRuntime, NodesWithoutAWishGetWhatIsFree) {
  const auto table = TableOf(1, 1);
  auto serve = TestServer::Config(4);
  serve.taken = [](NodeId node) { return node == 1; };
  TestServer server(serve, table);
  TestNode second(TestNode::Config(server.address(), 2), table);
  TestNode first(TestNode::Config(server.address()), table);
  TestNode third(TestNode::Config(server.address()), table);
  EXPECT_EQ(first.client().node(), 0);
  EXPECT_EQ(second.client().node(), 2);
  EXPECT_EQ(third.client().node(), 3);
  // Connections come one by one: before the last is there, one of them might be about to go.
  for (NodeId n : {0, 2, 3}) {
    while (!server.StatusOf(n).connected) std::this_thread::yield();
  }
  EXPECT_THAT(WhyNot(TestNode::Config(server.address()), table),
              HasSubstr("all 4 nodes of the run are taken"));
  EXPECT_THAT(WhyNot(TestNode::Config(server.address(), 1), table),
              HasSubstr("node 1 is the coordinator's own"));
  EXPECT_THAT(WhyNot(TestNode::Config(server.address(), 4), table),
              HasSubstr("there is no node 4 in a run of 4 nodes"));
  EXPECT_THAT(WhyNot(TestNode::Config(server.address(), 3), table),
              HasSubstr("node 3 is another process's"));
  EXPECT_TRUE(server.lost.empty());
}

TEST(TcpRuntime, ANodeIsGivenTheNumberThatItPrefersIfThatIsFree) {
  const auto table = TableOf(1, 1);
  TestServer server(TestServer::Config(4), table);
  const auto prefers = [&](NodeId node) {
    auto config = TestNode::Config(server.address());
    config.preferred = node;
    return config;
  };
  TestNode first(prefers(2), table);
  EXPECT_EQ(first.client().node(), 2);
  TestNode second(prefers(2), table);  // it is taken
  EXPECT_EQ(second.client().node(), 0);
  TestNode third(prefers(77), table);  // there is no such node
  EXPECT_EQ(third.client().node(), 1);
}

// What a node without a wish is told first while it is not let in.
std::string FirstAnswer(const TestServer& server) {
  ComputePool pool(1);
  MemoryRecorder recorder;
  std::atomic<bool> stop = false;
  std::string answer = "let in";
  JoinTcp(TestNode::Config(server.address()), TableOf(1, 1), pool, recorder, stop,
          [&](const std::string& why) {
            answer = why;
            stop = true;
          });
  return answer;
}

TEST(TcpRuntime, TheNumberOfANodeThatIsAwayIsGivenToOthersLast) {
  const auto table = TableOf(1, 1);
  auto serve = TestServer::Config(3);
  serve.options.give_up_after = Seconds(600);
  TestServer server(serve, table);
  auto zero = std::make_unique<TestNode>(TestNode::Config(server.address(), 0), table);
  auto one = std::make_unique<TestNode>(TestNode::Config(server.address(), 1), table);
  one->Send(kCoordinator, Leave{"for a while"});
  one->Finish(Seconds(10));
  ASSERT_TRUE(server.UntilGot(1));
  zero.reset();  // without a word
  ASSERT_TRUE(server.UntilEvent("disconnected"));
  TestNode fresh(TestNode::Config(server.address()), table);
  EXPECT_EQ(fresh.client().node(), 2);
  auto config = TestNode::Config(server.address());
  config.preferred = 1;
  TestNode back(config, table);
  EXPECT_EQ(back.client().node(), 1);
  EXPECT_THAT(FirstAnswer(server), HasSubstr("or away for a moment only"));
}

TEST(TcpRuntime, TheNumberOfANodeThatStaysAwayIsGivenToOthers) {
  const auto table = TableOf(1, 1);
  auto serve = TestServer::Config(1);
  serve.options.give_up_after = Seconds(1);
  TestServer server(serve, table);
  auto node = std::make_unique<TestNode>(TestNode::Config(server.address(), 0), table);
  node.reset();
  TestNode last(TestNode::Config(server.address()), table);
  EXPECT_EQ(last.client().node(), 0);
}

TEST(TcpRuntime, WhereARunIsResumedItsNodesHaveTheirNumbers) {
  auto serve = TestServer::Config(2);
  serve.resumed = true;
  serve.options.give_up_after = Seconds(600);
  TestServer server(serve, TableOf(1, 1));
  EXPECT_THAT(FirstAnswer(server), HasSubstr("or away for a moment only"));
}

TEST(TcpRuntime, ANodeThatLeavesIsNotLostAndItsPlaceIsFree) {
  const auto table = TableOf(1, 1);
  TestServer server(TestServer::Config(1), table);
  {
    TestNode node(TestNode::Config(server.address(), 0), table);
    node.Send(kCoordinator, Leave{"tired"});
    EXPECT_TRUE(node.Until([&] { return node.delivered == 1; }));
    ASSERT_TRUE(server.UntilGot(1));
    EXPECT_EQ(std::get<Leave>(server.got[0].second).reason, "tired");
    TestNode next(TestNode::Config(server.address(), 0), table);
    next.Send(kCoordinator, Applied{3, 0, 0});
    ASSERT_TRUE(server.UntilGot(2));
    next.Send(kCoordinator, Leave{"too"});
    next.Finish(Seconds(10));
  }
  ASSERT_TRUE(server.UntilGot(3));
  TestNode last(TestNode::Config(server.address(), 0), table);
  EXPECT_THAT(server.Get([&] { return server.lost; }), IsEmpty());
}

TEST(TcpRuntime, ANodeThatClosesWithoutLeavingIsLost) {
  const auto table = TableOf(1, 1);
  TestServer server(TestServer::Config(1), table);
  TestNode node(TestNode::Config(server.address(), 0), table);
  node.Finish(Seconds(10));
  ASSERT_TRUE(server.Until([&] { return server.lost.size() == 1; }));
  EXPECT_EQ(server.lost[0].first, 0);
}

TEST(TcpRuntime, ANodeThatFailsSaysWhy) {
  const auto table = TableOf(1, 1'000'000);
  TestServer server(TestServer::Config(1), table);
  TestNode node(TestNode::Config(server.address(), 0), table);
  node.Get([&] { node.runtime->Send(kCoordinator, OfferOf(*table, 1, 1), 0); });
  node.Halt();
  node.client().Fail("no space left on device");
  ASSERT_TRUE(server.Until([&] { return !server.lost.empty(); }));
  EXPECT_THAT(server.lost, ElementsAre(testing::Pair(0, "it has failed: no space left on device")));
}

TEST(TcpRuntime, ABannedNodeIsToldWhyAndStaysOut) {
  const auto table = TableOf(1, 1);
  TestServer server(TestServer::Config(2), table);
  TestNode node(TestNode::Config(server.address(), 0), table);
  TestNode other(TestNode::Config(server.address(), 1), table);
  server.Get([&] {
    server.runtime->Send(0, Reject{RejectReason::kNotMember, 1, "last word"}, 0);
    server.server().Ban(0, "its updates are ten times too large");
  });
  ASSERT_TRUE(node.Until([&] { return node.ended; }));
  ASSERT_EQ(node.got.size(), 1u);  // what was said before
  EXPECT_THAT([&] { std::rethrow_exception(node.error); },
              testing::ThrowsMessage<std::runtime_error>(
                  HasSubstr("node 0 is kept out: its updates are ten times too large")));
  EXPECT_THAT(WhyNot(TestNode::Config(server.address(), 0), table), HasSubstr("kept out"));
  other.Send(kCoordinator, Applied{1, 0, 0});
  EXPECT_TRUE(server.UntilGot(1));
  EXPECT_THAT(server.Get([&] { return server.lost; }), IsEmpty());
}

TEST(TcpRuntime, AMessageToWhoIsNotThereIsALoss) {
  TestServer server(TestServer::Config(2), TableOf(1, 1));
  const bool nested = server.Get([&] {
    server.runtime->Send(1, Applied{}, 0);
    return !server.lost.empty();
  });
  EXPECT_FALSE(nested);
  ASSERT_TRUE(server.Until([&] { return !server.lost.empty(); }));
  EXPECT_EQ(server.lost[0].first, 1);
}

TEST(TcpRuntime, WhatWasSentArrivesBeforeTheCoordinatorCloses) {
  const auto table = TableOf(1, 1'000'000);
  auto server = std::make_unique<TestServer>(TestServer::Config(1), table);
  TestNode node(TestNode::Config(server->address(), 0), table);
  server->Get([&] {
    for (Version v = 1; v <= 5; ++v) server->runtime->Send(0, UpdateOf(*table, v, 1), 0);
  });
  server->Finish(Seconds(30));
  EXPECT_EQ(server->delivered, 0);  // none was asked for
  server.reset();
  ASSERT_TRUE(node.UntilGot(5));
}

TEST(TcpRuntime, TheRunsClockIsTheCoordinators) {
  const auto table = TableOf(1, 1);
  TestServer server(TestServer::Config(1), table);
  server.Get([&] { server.runtime->SetNow(std::chrono::hours(5)); });
  TestNode node(TestNode::Config(server.address(), 0), table);
  const sim::Time now = node.Get([&] { return node.runtime->Now(); });
  EXPECT_GE(now, std::chrono::hours(5));
  EXPECT_LT(now, std::chrono::hours(6));
}

}  // namespace
}  // namespace spes::trainer
