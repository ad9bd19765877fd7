// What the log keeps of transfers, and what a session says of itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "tests/trainer/runtime/tcp/endpoint.h"
#include "tests/trainer/runtime/tcp/key_ring.h"
#include "tests/trainer/runtime/tcp/payloads.h"
#include "trainer/protocol/wire_size.h"

namespace spes::trainer {
namespace {

std::vector<analysis::FlowRecord> FlowsOf(TestServer& server, std::size_t count) {
  for (;;) {
    auto flows = server.Get([&] { return server.recorder.flows; });
    if (flows.size() >= count) return flows;
  }
}

class Flows : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Tls, Flows, testing::Bool());

TEST_P(Flows, TheCoordinatorRecordsBothWaysAsSimulationsDo) {
  const auto table = TableOf(4, 500'000);
  auto serve = TestServer::Config(3);
  if (GetParam()) serve.security = KeyRing::Coordinator("t");
  TestServer server(serve, table);
  auto join = TestNode::Config(server.address(), 2);
  if (GetParam()) join.security = KeyRing::Node("t");
  join.options.streams = 2;
  TestNode node(join, table);
  server.Get([&] { server.runtime->SetNow(std::chrono::seconds(1000)); });
  const Offer offer = OfferOf(*table, 4, 1);
  const Update update = UpdateOf(*table, 5, 2);
  node.Send(kCoordinator, offer);
  node.Send(kCoordinator, Applied{1, 0, 0});  // has no row
  ASSERT_TRUE(server.UntilGot(2));
  server.Send(2, update);
  const auto flows = FlowsOf(server, 2);
  ASSERT_EQ(flows.size(), 2u);
  const auto check = [&](const analysis::FlowRecord& flow, std::int64_t bytes) {
    EXPECT_EQ(flow.outcome, "done");
    EXPECT_EQ(flow.bytes, bytes);
    EXPECT_GT(flow.wire_bytes, bytes);  // headers
    EXPECT_LT(flow.wire_bytes, bytes + bytes / 4 + flow.retransmitted_bytes);
    EXPECT_GE(flow.retransmissions, flow.drops);
    EXPECT_GE(flow.drops, 0);
    EXPECT_GE(flow.start_s, 1000);
    EXPECT_LT(flow.start_s, flow.end_s);
    EXPECT_LT(flow.end_s, 1000 + 100);
    EXPECT_NEAR(flow.goodput_bps, 8.0 * static_cast<double>(bytes) / (flow.end_s - flow.start_s),
                1e-6 * flow.goodput_bps);
    EXPECT_GT(flow.rtt_min_s, 0);
    EXPECT_LE(flow.rtt_min_s, flow.rtt_mean_s * 1.0001);
    EXPECT_LT(flow.rtt_mean_s, 10);
  };
  check(flows[0], WireBytes(offer, *table));
  EXPECT_EQ(flows[0].from, 2);
  EXPECT_EQ(flows[0].to, kCoordinator);
  EXPECT_EQ(flows[0].message, "offer");
  EXPECT_EQ(flows[0].round, 4);
  check(flows[1], WireBytes(update, *table));
  EXPECT_EQ(flows[1].from, kCoordinator);
  EXPECT_EQ(flows[1].to, 2);
  EXPECT_EQ(flows[1].message, "update");
  EXPECT_EQ(flows[1].round, 5);
  EXPECT_NE(flows[0].flow, flows[1].flow);
}

TEST(Status, TellsOfConnectionsBytesAndRoundTrips) {
  const auto table = TableOf(1, 500'000);
  TestServer server(TestServer::Config(2), table);
  EXPECT_FALSE(server.StatusOf(0).connected);
  EXPECT_TRUE(std::isnan(server.StatusOf(0).rtt_s));
  TestNode node(TestNode::Config(server.address(), 0), table);
  while (!server.StatusOf(0).connected) std::this_thread::yield();
  while (std::isnan(server.StatusOf(0).rtt_s)) std::this_thread::yield();
  EXPECT_GE(server.StatusOf(0).rtt_s, 0);
  EXPECT_LT(server.StatusOf(0).rtt_s, 2);
  EXPECT_THAT(server.StatusOf(0).address, testing::HasSubstr("127.0.0.1:"));
  node.Send(kCoordinator, OfferOf(*table, 1, 1));
  ASSERT_TRUE(server.UntilGot(1));
  EXPECT_GT(server.StatusOf(0).received_bytes, 2'000'000);
  EXPECT_GT(node.StatusOf(kCoordinator).sent_bytes, 2'000'000);
  EXPECT_EQ(server.StatusOf(0).reconnects, 0);
  EXPECT_FALSE(server.StatusOf(1).connected);
  // A session that has ended still counts.
  node.Finish(Seconds(5));
  ASSERT_TRUE(server.Until([&] { return !server.lost.empty(); }));
  EXPECT_FALSE(server.StatusOf(0).connected);
  EXPECT_GT(server.StatusOf(0).received_bytes, 2'000'000);
}

}  // namespace
}  // namespace spes::trainer
