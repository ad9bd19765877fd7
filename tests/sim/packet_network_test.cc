// What only the packet level has: TCP, headers, queues, losses.
#ifdef SPES_NS3
#include "sim/ns3/packet_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "sim/ns3/fast_tx_buffer.h"
#include "tests/sim/levels.h"

namespace spes::sim {
namespace {

using namespace std::chrono_literals;

const AccessLink kLink{.down_bps = 20e6, .up_bps = 20e6, .rtt = 10ms};
constexpr std::int64_t kHeaders = 54;  // TCP with timestamps, IPv4, PPP

std::unique_ptr<Network> Make(const Topology& topology, const TcpConfig& tcp = {}) {
  auto network = MakePacketNetwork(topology, tcp);
  PrepareAll(*network, topology);
  return network;
}

std::int64_t Segments(std::int64_t bytes) { return (bytes + 1447) / 1448; }

TEST(PacketNetwork, OneAtATime) {
  {
    const auto first = MakePacketNetwork(Star(2, kLink), {});
    EXPECT_THROW(MakePacketNetwork(Star(2, kLink), {}), std::logic_error);
    Transfer(*first, {.from = 0, .to = 1, .bytes = 1000});
  }
  const auto second = MakePacketNetwork(Star(2, kLink), {});
  EXPECT_EQ(second->Now(), 0s);
  Transfer(*second, {.from = 0, .to = 1, .bytes = 1000});
}

TEST(PacketNetwork, MayEndInTheMiddleOfFlows) {
  const auto network = Make(Star(3, kLink));
  for (const int to : {1, 2}) network->Start({.from = 0, .to = to, .bytes = 10'000'000}, {});
  network->Cancel(network->Start({.from = 1, .to = 2, .bytes = 1000}, {}));
  network->AdvanceTo(150ms);
  network->Cancel(network->Start({.from = 1, .to = 2, .bytes = 1000}, {}));
}

TEST(PacketNetwork, OnlyTheFirstContactPaysTheHandshake) {
  const auto network = MakePacketNetwork(Star(2, kLink), {});
  const FlowResult first = Transfer(*network, {.from = 0, .to = 1, .bytes = 10'000});
  const FlowResult second = Transfer(*network, {.from = 0, .to = 1, .bytes = 10'000});
  const FlowResult back = Transfer(*network, {.from = 1, .to = 0, .bytes = 10'000});
  const Time handshake = (first.end - first.start) - (second.end - second.start);
  EXPECT_NEAR(ToSeconds(handshake), 0.020, 0.0005);
  EXPECT_NEAR(ToSeconds(back.end - back.start), ToSeconds(second.end - second.start), 0.0005);
  EXPECT_GT(first.wire_bytes, second.wire_bytes);
}

TEST(PacketNetwork, WireBytesArePayloadAndHeaders) {
  const auto network = Make(Star(2, kLink));
  for (const std::int64_t bytes : {1, 1448, 1449, 1'000'000}) {
    const FlowResult result = Transfer(*network, {.from = 0, .to = 1, .bytes = bytes});
    EXPECT_EQ(result.wire_bytes, bytes + kHeaders * Segments(bytes));
    EXPECT_EQ(result.dropped_packets, 0);
    EXPECT_EQ(result.retransmissions, 0);
  }
}

TEST(PacketNetwork, WireBytesHoldRetransmissions) {
  AccessLink link = kLink;
  link.loss = 0.01;
  const auto network = Make(Star(2, link));
  const std::int64_t bytes = 5'000'000;
  const FlowResult result = Transfer(*network, {.from = 0, .to = 1, .bytes = bytes});
  EXPECT_EQ(result.delivered_bytes, bytes);
  EXPECT_GT(result.retransmissions, 20);
  EXPECT_EQ(result.wire_bytes, bytes + result.retransmitted_bytes +
                                   kHeaders * (Segments(bytes) + result.retransmissions));
  // Two links, each with its loss.
  EXPECT_NEAR(result.dropped_packets, 0.02 * Segments(bytes), 25);
  EXPECT_GE(result.retransmissions, result.dropped_packets);
}

// Two hosts behind one path whose queue holds a tenth of what is in flight.
TEST(PacketNetwork, LossInQueuesIsCountedWhereverItIs) {
  for (const bool at_sender : {true, false}) {
    Topology topology = Star(3, {.down_bps = 20e6, .up_bps = 20e6, .rtt = 40ms});
    (at_sender ? topology.hosts[0].link.up_bps : topology.hosts[1].link.down_bps) = 10e6;
    for (Host& host : topology.hosts) host.link.queue_bdp = 0.1;
    const auto network = Make(topology);
    std::int64_t dropped = 0, retransmitted = 0, ended = 0;
    for (int i = 0; i < 2; ++i) {
      network->Start(
          {.from = at_sender ? 0 : 2 * i, .to = at_sender ? 1 + i : 1, .bytes = 2'000'000},
          [&](const FlowResult& result) {
            ++ended;
            EXPECT_EQ(result.delivered_bytes, 2'000'000);
            dropped += result.dropped_packets;
            retransmitted += result.retransmissions;
          });
    }
    while (network->NextEvent()) network->AdvanceTo(kNever);
    EXPECT_EQ(ended, 2);
    EXPECT_GT(dropped, 0) << at_sender;
    EXPECT_GE(retransmitted, dropped) << at_sender;
  }
}

TEST(PacketNetwork, AnOutageEndsAsStalled) {
  Topology topology = Star(2, kLink);
  topology.hosts[1].link.loss = 0.999999;
  const auto network = Make(topology, {.stall_timeout = 30s});
  const FlowResult result = Transfer(*network, {.from = 0, .to = 1, .bytes = 1'000'000});
  EXPECT_EQ(result.outcome, FlowOutcome::kStalled);
  EXPECT_EQ(result.end, 30s);
  EXPECT_EQ(result.delivered_bytes, 0);
  EXPECT_GT(result.wire_bytes, 0);
  EXPECT_GT(result.dropped_packets, 10);
  EXPECT_FALSE(network->NextEvent());
}

TEST(PacketNetwork, AnOutageAtFirstContactEndsToo) {
  Topology topology = Star(2, kLink);
  topology.hosts[1].link.loss = 0.999999;
  const auto network = MakePacketNetwork(topology, {.stall_timeout = 10min});
  const FlowResult result = Transfer(*network, {.from = 0, .to = 1, .bytes = 1'000'000});
  EXPECT_EQ(result.outcome, FlowOutcome::kFailed);
  EXPECT_LT(result.end, 10min);
}

TEST(PacketNetwork, HeavyLossIsSlowButEnds) {
  AccessLink link = kLink;
  link.loss = 0.2;
  const auto network = Make(Star(2, link));
  const FlowResult result = Transfer(*network, {.from = 0, .to = 1, .bytes = 100'000});
  EXPECT_EQ(result.outcome, FlowOutcome::kDone);
  EXPECT_EQ(result.delivered_bytes, 100'000);
}

// With the time-out close to the round trip, each delayed acknowledgement would be taken for a loss
// and everything sent again, at a tenth of the rate.
TEST(PacketNetwork, LongRoundTripsCauseNoNeedlessTimeouts) {
  for (const Time rtt : {195ms, 200ms, 230ms}) {
    Topology topology = Star(2, {.down_bps = 100e6, .up_bps = 100e6, .rtt = rtt / 2});
    topology.hosts[1].link.loss = 1e-3;
    const auto network = Make(topology);
    const FlowResult result = Transfer(*network, {.from = 0, .to = 1, .bytes = 30'000'000});
    EXPECT_LE(result.retransmissions, result.dropped_packets * 1.2 + 10) << rtt.count();
    EXPECT_LT(result.end, 100s);
  }
}

TEST(PacketNetwork, LossesFollowTheSeed) {
  Topology topology = Star(2, kLink);
  topology.hosts[0].link.loss = 0.01;
  const auto end = [&](std::uint64_t seed) {
    const auto network = Make(topology, {.seed = seed});
    return Transfer(*network, {.from = 0, .to = 1, .bytes = 1'000'000}).end;
  };
  EXPECT_EQ(end(1), end(1));
  EXPECT_NE(end(1), end(2));
}

TEST(PacketNetwork, StreamsHelpAgainstLoss) {
  Topology topology = Star(2, {.down_bps = 100e6, .up_bps = 100e6, .rtt = 40ms});
  topology.hosts[1].link.loss = 1e-3;
  const auto delivered = [&](int streams) {
    const auto network = Make(topology);
    std::int64_t bytes = 0;
    const FlowId id =
        network->Start({.from = 0, .to = 1, .bytes = 1'000'000'000, .streams = streams},
                       [&](const FlowResult& result) { bytes = result.delivered_bytes; });
    while (network->Now() < 15s) network->AdvanceTo(15s);
    network->Cancel(id);
    network->AdvanceTo(15s);
    return bytes;
  };
  EXPECT_GT(delivered(8), 3 * delivered(1));
}

// Behind a full queue of 80 ms a bulk message waits its turn; a control message does not.
TEST(PacketNetwork, ControlGoesBeforeBulk) {
  const auto latency = [](TrafficClass traffic_class) {
    const auto network = Make(Star(3, {.down_bps = 20e6, .up_bps = 20e6, .rtt = 40ms}));
    network->Start({.from = 0, .to = 1, .bytes = 50'000'000}, {});
    while (network->Now() < 3s) network->AdvanceTo(3s);
    return ToSeconds(Transfer(*network,
                              {.from = 0, .to = 2, .bytes = 1000, .traffic_class = traffic_class})
                         .end) -
           3;
  };
  EXPECT_GT(latency(TrafficClass::kBulk), 0.1);
  EXPECT_NEAR(latency(TrafficClass::kControl), 0.041, 0.002);
}

TEST(PacketNetwork, RoundTripsAreMeasured) {
  const auto network = Make(Star(2, {.down_bps = 100e6, .up_bps = 100e6, .rtt = 25ms}));
  const FlowResult result = Transfer(*network, {.from = 0, .to = 1, .bytes = 10'000'000});
  ASSERT_TRUE(result.rtt_min);
  EXPECT_NEAR(ToSeconds(*result.rtt_min), 0.050, 0.0005);
  EXPECT_GT(*result.rtt_mean, *result.rtt_min) << "the queue fills";
  EXPECT_LT(*result.rtt_mean, 105ms);
  EXPECT_FALSE(Transfer(*network, {.from = 0, .to = 1, .bytes = 1}).rtt_min)
      << "over before the acknowledgement";
}

TEST(PacketNetwork, NoDelayAtAll) {
  const auto network = Make(Star(2, {.down_bps = 1e9, .up_bps = 1e9}));
  const FlowResult result = Transfer(*network, {.from = 0, .to = 1, .bytes = 2'000'000});
  EXPECT_EQ(result.delivered_bytes, 2'000'000);
  EXPECT_LT(result.end, 30ms);
}

// 32-bit sequence numbers come round after 4 GiB; large segments keep this short.
TEST(PacketNetwork, FlowsBeyond4GiB) {
  const auto network =
      Make(Star(2, {.down_bps = 100e9, .up_bps = 100e9, .rtt = 100us}), {.segment_bytes = 65'000});
  const std::int64_t bytes = 4'500'000'000;
  const FlowResult result = Transfer(*network, {.from = 0, .to = 1, .bytes = bytes});
  EXPECT_EQ(result.outcome, FlowOutcome::kDone);
  EXPECT_EQ(result.delivered_bytes, bytes);
  EXPECT_EQ(result.retransmitted_bytes, 0);
  EXPECT_EQ(result.wire_bytes, bytes + kHeaders * ((bytes + 64'999) / 65'000));
  EXPECT_NEAR(ToSeconds(result.end), bytes * 8 / 100e9, 0.01);
}

std::vector<FlowResult> LossyRun() {
  Topology topology = Star(5, {.down_bps = 40e6, .up_bps = 40e6, .rtt = 30ms, .queue_bdp = 0.3});
  topology.hosts[1].link.loss = 0.05;
  topology.hosts[2].link.loss = 0.01;
  topology.hosts[3].link.rtt = 5ms;
  const auto network = Make(topology);
  std::vector<FlowResult> results;
  for (const int to : {1, 2, 3, 4}) {
    for (const bool down : {true, false}) {
      network->Start({.from = down ? 0 : to, .to = down ? to : 0, .bytes = 4'000'000},
                     [&](const FlowResult& result) { results.push_back(result); });
    }
  }
  while (network->NextEvent()) network->AdvanceTo(kNever);
  return results;
}

TEST(FastTxBuffer, GivesTheResultsOfNs3sOwn) {
  const long before = FastTxBufferCalls();
  const std::vector<FlowResult> fast = LossyRun();
  const long calls = FastTxBufferCalls() - before;
  EXPECT_GT(calls, 20'000) << "the linker took ns-3's definitions";
  SetFastTxBuffer(false);
  const std::vector<FlowResult> slow = LossyRun();
  SetFastTxBuffer(true);
  EXPECT_EQ(FastTxBufferCalls() - before, calls);
  ASSERT_EQ(fast.size(), 8u);
  ASSERT_EQ(slow.size(), 8u);
  std::int64_t retransmissions = 0;
  for (std::size_t i = 0; i < fast.size(); ++i) {
    EXPECT_EQ(fast[i].id, slow[i].id);
    EXPECT_EQ(fast[i].end, slow[i].end);
    EXPECT_EQ(fast[i].wire_bytes, slow[i].wire_bytes);
    EXPECT_EQ(fast[i].retransmissions, slow[i].retransmissions);
    EXPECT_EQ(fast[i].dropped_packets, slow[i].dropped_packets);
    EXPECT_EQ(fast[i].rtt_mean, slow[i].rtt_mean);
    retransmissions += fast[i].retransmissions;
  }
  EXPECT_GT(retransmissions, 200);
}

// A lone flow that keeps the queue exactly full must not shut out one that comes later.
TEST(PacketNetwork, ANewcomerIsNotStarvedByAFullQueue) {
  for (int start = 8; start < 28; ++start) {  // quarters of a second
    const auto network = MakePacketNetwork(Star(3, kLink), {});
    PrepareAll(*network, Star(3, kLink));
    double seconds = 0;
    network->Start({.from = 0, .to = 2, .bytes = 1'000'000'000'000}, {});
    while (network->Now() < start * 250ms) network->AdvanceTo(start * 250ms);
    network->Start({.from = 1, .to = 2, .bytes = 2'000'000},
                   [&](const FlowResult& r) { seconds = ToSeconds(r.end - r.start); });
    while (seconds == 0) network->AdvanceTo(kNever);
    EXPECT_LT(seconds, 10) << "alone it takes 0.8 s; started at " << start * 0.25 << " s";
  }
}

}  // namespace
}  // namespace spes::sim
#endif
