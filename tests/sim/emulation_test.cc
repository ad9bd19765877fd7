// A network in real time, between sockets of this process. How late a busy machine is, is nowhere
// asserted; that nothing comes too early, everywhere.
#ifdef SPES_NS3
#include "sim/ns3/emulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/ns3/packet_network.h"
#include "tests/sim/levels.h"

namespace spes::sim {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

std::string MacBytes(int host) { return {2, 0, 0, 0, 0, static_cast<char>(host)}; }

std::string EthernetFrame(const std::string& destination, const std::string& source, char filler,
                          std::size_t ip_bytes = 1500) {
  return destination + source + '\x08' + '\0' + std::string(ip_bytes, filler);
}

// The hosts' ends of an emulation.
class Hosts {
 public:
  explicit Hosts(const Topology& topology, const TcpConfig& tcp = {}) {
    std::vector<Descriptor> taps;
    for (std::size_t i = 0; i < topology.hosts.size(); ++i) {
      int ends[2];
      Check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), "a pair of sockets");
      hosts_.emplace_back(ends[0]);
      taps.emplace_back(ends[1]);
    }
    emulation.emplace(topology, tcp, std::move(taps));
  }

  void Send(int host, const std::string& frame) const {
    Check(send(hosts_[host].get(), frame.data(), frame.size(), 0), "sending");
  }
  // Nothing when none comes in `patience`; empty when the emulation has let go of the other end.
  std::optional<std::string> Receive(int host, std::chrono::milliseconds patience = 10s) const {
    pollfd wait{hosts_[host].get(), POLLIN, 0};
    if (Check(poll(&wait, 1, static_cast<int>(patience.count())), "poll") == 0) return {};
    std::string frame(4096, '\0');
    frame.resize(Check(recv(hosts_[host].get(), frame.data(), frame.size(), 0), "receiving"));
    return frame;
  }

  std::optional<Emulation> emulation;

 private:
  std::vector<Descriptor> hosts_;
};

const AccessLink kLink{.down_bps = 100e6, .up_bps = 100e6, .rtt = 20ms};

TEST(Emulation, CarriesWholeFramesInTheirTime) {
  const Hosts hosts(Star(3, kLink));
  const std::string frame = EthernetFrame(MacBytes(2), MacBytes(0), 'x');
  const Clock::time_point start = Clock::now();
  hosts.Send(0, frame);
  EXPECT_EQ(hosts.Receive(2), frame);
  EXPECT_GT(Clock::now() - start, 19900us) << "20 ms and 0.2 ms of two links' rates";
  EXPECT_EQ(hosts.Receive(1, 0ms), std::nullopt) << "nobody else has it";

  const std::string answer = EthernetFrame(MacBytes(0), MacBytes(2), 'y', 40);
  hosts.Send(2, answer);
  EXPECT_EQ(hosts.Receive(0), answer);
}

TEST(Emulation, KeepsOrderAndRate) {
  constexpr int kFrames = 100;
  const Hosts hosts(Star(2, {.down_bps = 1e9, .up_bps = 10e6, .rtt = 100ms}));
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < kFrames; ++i) {
    hosts.Send(0, EthernetFrame(MacBytes(1), MacBytes(0), static_cast<char>(i)));
  }
  for (int i = 0; i < kFrames; ++i) {
    const auto frame = hosts.Receive(1);
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->back(), static_cast<char>(i));
  }
  EXPECT_GT(Clock::now() - start, 100ms + kFrames * 1201us - 1ms) << "1502 bytes at 10 Mbps each";
}

TEST(Emulation, CountsWhatItCarriedAndWhatItDidNot) {
  Topology topology = Star(2, {.down_bps = 1e9, .up_bps = 1e6, .rtt = 1ms});
  Hosts hosts(topology);
  constexpr int kFrames = 60;  // the queue holds 20
  for (int i = 0; i < kFrames; ++i) {
    hosts.Send(0, EthernetFrame(MacBytes(1), MacBytes(0), 'x'));
  }
  int arrived = 0;
  for (const Clock::time_point start = Clock::now();
       arrived + hosts.emulation->Counts().queue_overflows[0] < kFrames;) {
    ASSERT_LT(Clock::now() - start, 60s);
    arrived += hosts.Receive(1, 10ms).has_value();
  }
  for (const std::string& unknown : {MacBytes(0), MacBytes(7), std::string(6, '\xff')}) {
    hosts.Send(0, EthernetFrame(unknown, MacBytes(0), 'x'));
  }
  EXPECT_EQ(hosts.Receive(1, 100ms), std::nullopt);
  const EmulationCounts counts = hosts.emulation->Counts();
  EXPECT_EQ(counts.frames, arrived);
  EXPECT_EQ(counts.wire_bytes, arrived * 1502);
  EXPECT_EQ(counts.unaddressed_frames, 3);
  EXPECT_EQ(hosts.emulation->links()[0].name, "host0 up");
  EXPECT_EQ(counts.queue_overflows[0], kFrames - arrived);
  EXPECT_EQ(counts.links[0].dropped_packets, kFrames - arrived);
  EXPECT_EQ(counts.links[0].wire_bytes, arrived * 1502);
  EXPECT_GE(kFrames - arrived, kFrames - 24);
  EXPECT_GT(counts.lag, 0s);
  EXPECT_LE(counts.late_frames, counts.lag > Emulation::kLate ? arrived : 0);
  EXPECT_EQ(hosts.emulation->Counts().recent_lag, 0s) << "nothing happened since";
}

TEST(Emulation, LetsGoOfEverythingAtItsEnd) {
  Hosts hosts(Star(2, kLink));
  for (int i = 0; i < 50; ++i) hosts.Send(0, EthernetFrame(MacBytes(1), MacBytes(0), 'x'));
  hosts.emulation.reset();
  while (hosts.Receive(1, 0ms).value_or("").size() > 0) {
  }
  EXPECT_EQ(hosts.Receive(1, 0ms), "");
}

TEST(Emulation, LeavesTheOtherLevelsAsTheyAre) {
  const Topology topology = Star(2, kLink);
  const auto packets = [&] {
    const auto network = MakePacketNetwork(topology, {});
    return Transfer(*network, {.from = 0, .to = 1, .bytes = 3'000'000}).end;
  };
  const Time before = packets();
  {
    const Hosts hosts(topology);
    EXPECT_THROW(MakePacketNetwork(topology, {}), std::logic_error);
    EXPECT_THROW(Hosts{topology}, std::logic_error);
    hosts.Send(0, EthernetFrame(MacBytes(1), MacBytes(0), 'x'));
    EXPECT_TRUE(hosts.Receive(1));
  }
  EXPECT_EQ(packets(), before) << "to the nanosecond";
  const Hosts again(topology);
  again.Send(0, EthernetFrame(MacBytes(1), MacBytes(0), 'x'));
  EXPECT_TRUE(again.Receive(1));
}

TEST(Emulation, LongSegmentsMakeLongFrames) {
  const Hosts hosts(Star(2, kLink), {.segment_bytes = 3948});
  const std::string frame = EthernetFrame(MacBytes(1), MacBytes(0), 'x', 4000);
  hosts.Send(0, frame);
  EXPECT_EQ(hosts.Receive(1), frame);
}

TEST(Emulation, RefusesWhatItCannotCarry) {
  EXPECT_THROW(Hosts(Star(Emulation::kMostHosts + 1, kLink)), std::invalid_argument);
  EXPECT_THROW(Emulation(Star(2, kLink), {}, {}), std::invalid_argument);
  EXPECT_THROW(Hosts(Star(2, {.loss = 2})), std::invalid_argument);
}

TEST(Emulation, MacsAreTheHosts) {
  EXPECT_EQ(MacOfHost(0), "02:00:00:00:00:00");
  EXPECT_EQ(MacOfHost(258), "02:00:00:00:01:02");
}

}  // namespace
}  // namespace spes::sim
#endif  // SPES_NS3
