#include "tests/kernel/kernel_path.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <stdexcept>

namespace spes::kernel {
namespace {

constexpr double kPacketLevelBytes = 1502;  // of a full segment on the packet level's wires
constexpr double kEthernetBytes = 1514;     // of the same as the kernel's queues count it
constexpr double kInitialWindow = 10;       // segments

std::string Integer(double value) { return std::to_string(std::llround(value)); }

// A token bucket as the only queue of `device`. The bucket holds what passes in 0.3 ms, or two
// packets: timers on a busy machine are late by that much, and what is not sent then is lost rate.
std::string TokenBucket(const std::string& device, double bps, double limit_bytes) {
  const double bucket = std::max(2 * kEthernetBytes, bps / 8 * 0.3e-3);
  return "tc qdisc add dev " + device + " root tbf rate " + Integer(bps) + "bit burst " +
         Integer(bucket) + " limit " + Integer(limit_bytes);
}

}  // namespace

std::string WhatIsMissing(const std::string& congestion) {
  if (geteuid() != 0) return "not root";
  std::string step;
  try {
    step = "no network namespaces, or no ip command";
    const sim::Namespace space;
    step = "no TUN devices";
    space.Run([] {
      const sim::Descriptor tun(
          sim::Check(open("/dev/net/tun", O_RDWR | O_CLOEXEC), "/dev/net/tun"));
    });
    space.Command("ip tuntap add dev probe mode tun");
    step = "no veth devices";
    space.Command("ip link add probe1 type veth peer name probe2");
    step = "no token bucket (tbf), or no tc command";
    space.Command(TokenBucket("probe1", 1e6, 1e5));
    step = "no congestion control " + congestion;
    space.Run([&] {
      const sim::Descriptor socket_fd(sim::Check(socket(AF_INET, SOCK_STREAM, 0), "a socket"));
      sim::Check(setsockopt(socket_fd.get(), IPPROTO_TCP, TCP_CONGESTION, congestion.c_str(),
                            static_cast<socklen_t>(congestion.size())),
                 congestion);
    });
  } catch (const std::exception& error) {
    return step + ": " + error.what();
  }
  return {};
}

KernelPath::KernelPath(const PathSettings& settings) : settings_(settings) {
  relay_ = std::make_unique<TunRelay>("wan", sender_, "10.9.0.1/24", router_, "10.9.0.2/24",
                                      settings.rtt / 2);
  router_.Command("ip link add lan type veth peer name lan netns " + receiver_.Path());
  router_.Command("ip address add 10.9.1.1/24 dev lan && ip link set dev lan up");
  receiver_.Command("ip address add " + ReceiverAddress() +
                    "/24 dev lan && ip link set dev lan up");
  sender_.Command("ip route add default via 10.9.0.2");
  receiver_.Command("ip route add default via 10.9.1.1");
  router_.Set("ipv4/ip_forward", "1");
  // Each transfer starts from nothing, as the packet level's do.
  sender_.Set("ipv4/tcp_no_metrics_save", "1");
  // The packet level takes a packet while no more than QueueBytes wait, the one being sent
  // included; the kernel's bucket while there is room for it whole.
  const double packets = std::floor(QueueBytes() / kPacketLevelBytes) + 1;
  router_.Command(TokenBucket("lan", settings.bps * kEthernetBytes / kPacketLevelBytes,
                              packets * kEthernetBytes));
}

double KernelPath::QueueBytes() const {
  return std::max(settings_.queue_bdp * settings_.bps / 8 * sim::ToSeconds(settings_.rtt),
                  2 * kInitialWindow * kPacketLevelBytes);
}

double KernelPath::LateShare() const {
  const TunRelay::Counts counts = relay_->counts();
  return static_cast<double>(counts.late) /
         static_cast<double>(std::max<std::int64_t>(counts.packets, 1));
}

KernelPath::Drops KernelPath::drops() const {
  // "... Sent 1514 bytes 1 pkt (dropped 0, overlimits 0 requeues 0) ..."
  const std::string statistics = router_.Command("tc -s qdisc show dev lan root");
  const std::string mark = "(dropped ";
  const std::size_t at = statistics.find(mark);
  if (at == std::string::npos) {
    throw std::runtime_error("tc says nothing of dropped packets: " + statistics);
  }
  return {.queue = std::stoll(statistics.substr(at + mark.size())),
          .elsewhere = sender_.DroppedByDevices() + router_.DroppedByDevices() +
                       receiver_.DroppedByDevices() + relay_->counts().dropped};
}

}  // namespace spes::kernel
