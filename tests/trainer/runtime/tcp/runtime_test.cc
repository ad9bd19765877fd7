// Messages over real sockets of this machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/trainer/runtime/tcp/endpoint.h"
#include "tests/trainer/wire/samples.h"

namespace spes::trainer {
namespace {

TEST(TcpRuntime, EveryKindOfMessageArrivesAsItWasBothWays) {
  const auto table = SampleTable(DType::kFloat32);
  TestServer server(TestServer::Config(1), table);
  TestNode node(TestNode::Config(server.address(), 0), table);
  std::vector<Sample> samples = SampleMessages(DType::kFloat32);
  std::erase_if(samples, [](const Sample& s) { return std::holds_alternative<Leave>(s.message); });
  std::size_t sent_so_far = 0;
  for (const Sample& sample : samples) {
    ++sent_so_far;
    node.Send(kCoordinator, sample.message);
    ASSERT_TRUE(server.UntilGot(sent_so_far)) << sample.name;
    EXPECT_EQ(server.got.back().first, 0);
    EXPECT_TRUE(Same(sample.message, server.got.back().second)) << sample.name;
    server.Send(0, sample.message);
    ASSERT_TRUE(node.UntilGot(sent_so_far)) << sample.name;
    EXPECT_EQ(node.got.back().first, kCoordinator);
    EXPECT_TRUE(Same(sample.message, node.got.back().second)) << sample.name;
  }
  const int sent = static_cast<int>(samples.size());
  EXPECT_TRUE(server.Until([&] { return server.delivered == sent; }));
  EXPECT_TRUE(node.Until([&] { return node.delivered == sent; }));
}

}  // namespace
}  // namespace spes::trainer
