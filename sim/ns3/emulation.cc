#include "sim/ns3/emulation.h"

#include <fmt/format.h>
#include <ns3/fd-net-device.h>
#include <ns3/node.h>
#include <ns3/realtime-simulator-impl.h>
#include <ns3/uinteger.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "sim/ns3/frame_network.h"
#include "sim/ns3/simulator_claim.h"
#include "sim/refuse.h"

namespace spes::sim {
namespace {

constexpr int kMostUnread = 100'000;  // frames that were read and wait for their turn
constexpr std::array<std::uint8_t, 4> kMacPrefix = {0x02, 0, 0, 0};  // locally administered

struct Frame {
  ns3::Mac48Address source, destination;
  std::uint16_t protocol = 0;       // EtherType
  ns3::Ptr<ns3::Packet> ip_packet;  // what follows the Ethernet header
};

// The index of the host with this address; nothing for any other address, and all broadcasts.
std::optional<int> HostOfMac(const ns3::Mac48Address& address, int hosts) {
  std::array<std::uint8_t, 6> bytes;
  address.CopyTo(bytes.data());
  if (!std::equal(kMacPrefix.begin(), kMacPrefix.end(), bytes.begin())) return std::nullopt;
  const int host = bytes[4] << 8 | bytes[5];
  return host < hosts ? std::optional(host) : std::nullopt;
}

ns3::Mac48Address Mac(const ns3::Address& address) {
  return ns3::Mac48Address::ConvertFrom(address);
}

}  // namespace

std::string MacOfHost(int host) {
  return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", kMacPrefix[0], kMacPrefix[1],
                     kMacPrefix[2], kMacPrefix[3], host >> 8, host & 0xff);
}

// All of ns-3 happens on its thread, but for the reading of frames, on threads of ns-3's own.
class Emulation::Carrier {
 public:
  Carrier(const Topology& topology, const TcpConfig& tcp, std::vector<Descriptor> taps)
      : network_(topology, tcp,
                 {.now = [] { return Time(ns3::Simulator::Now().GetTimeStep()); },
                  .after =
                      [this](Time delay, std::function<void()> event) {
                        ns3::Simulator::Schedule(
                            ns3::TimeStep(delay.count()),
                            [this, event = std::move(event)] { OnEvent(event); });
                      }}),
        mtu_(Mtu(tcp)),
        taps_(std::move(taps)) {
    const std::size_t hosts = topology.hosts.size();
    if (hosts > static_cast<std::size_t>(kMostHosts)) {
      Refuse("an emulated network of {} hosts: at most {}", hosts, kMostHosts);
    }
    if (taps_.size() != hosts) Refuse("{} descriptors for {} hosts", taps_.size(), hosts);
    std::promise<void> started;
    std::future<void> start = started.get_future();
    thread_ = std::thread([this, &started] { Live(started); });
    try {
      start.get();
    } catch (...) {
      thread_.join();
      throw;
    }
  }

  ~Carrier() {
    stop_ = true;
    {
      // Wakes it where it waits for a frame; where it is far behind it looks at stop_.
      const std::lock_guard lock(mutex_);
      if (running_) {
        ns3::Simulator::ScheduleWithContext(ns3::Simulator::NO_CONTEXT, ns3::TimeStep(0),
                                            [] { ns3::Simulator::Stop(); });
      }
    }
    thread_.join();
  }

  EmulationCounts Counts() {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
    EmulationCounts counts = counts_;
    counts_.recent_lag = Time{0};
    for (const LinkQueue& queue : network_.queues()) {
      counts.links.push_back({queue.WireBytesBy(now_.count()), queue.dropped_packets()});
      counts.queue_overflows.push_back(queue.overflowed_packets());
    }
    return counts;
  }

  const std::vector<Link>& links() const { return network_.graph().links(); }

 private:
  void Live(std::promise<void>& started) {
    // Ahead of other programs, or their time slices would be lag.
    const sched_param priority{.sched_priority = 1};
    sched_setscheduler(0, SCHED_RR, &priority);
    try {
      const SimulatorClaim<ns3::RealtimeSimulatorImpl> simulator;
      simulator_ = &*simulator;
      for (Descriptor& tap : taps_) Attach(std::move(tap));
      running_ = true;
      ns3::Simulator::ScheduleNow([&started] { started.set_value(); });
      try {
        ns3::Simulator::Run();
      } catch (...) {
        const std::lock_guard lock(mutex_);
        error_ = std::current_exception();
      }
      const std::lock_guard lock(mutex_);
      running_ = false;
      devices_.clear();
    } catch (...) {
      started.set_exception(std::current_exception());
    }
  }

  // Starts with the node, when the simulator runs.
  void Attach(Descriptor tap) {
    const auto from = static_cast<int>(devices_.size());
    const auto device = ns3::CreateObject<ns3::FdNetDevice>();
    device->SetAttribute("RxQueueSize", ns3::UintegerValue(kMostUnread));
    device->SetMtu(static_cast<std::uint16_t>(mtu_));
    device->SetFileDescriptor(tap.Release());
    ns3::CreateObject<ns3::Node>()->AddDevice(device);
    device->SetReceiveCallback(
        ns3::NetDevice::ReceiveCallback([](const auto&...) { return true; }));
    device->SetPromiscReceiveCallback(ns3::NetDevice::PromiscReceiveCallback(
        [this, from](ns3::Ptr<ns3::NetDevice>, ns3::Ptr<const ns3::Packet> packet,
                     std::uint16_t protocol, const ns3::Address& source,
                     const ns3::Address& destination, ns3::NetDevice::PacketType) {
          OnEvent([&] { Accept(from, {Mac(source), Mac(destination), protocol, packet->Copy()}); });
          return true;
        }));
    devices_.push_back(device);
  }

  // All that happens because a frame came or is due.
  template <typename Event>
  void OnEvent(const Event& event) {
    const std::lock_guard lock(mutex_);
    if (stop_) return ns3::Simulator::Stop();
    now_ = Time(ns3::Simulator::Now().GetTimeStep());
    lag_ = Time(simulator_->RealtimeNow().GetTimeStep()) - now_;
    counts_.lag = std::max(counts_.lag, lag_);
    counts_.recent_lag = std::max(counts_.recent_lag, lag_);
    event();
  }

  void Accept(int from, Frame frame) {
    const auto to = HostOfMac(frame.destination, static_cast<int>(devices_.size()));
    if (!to || *to == from) {
      ++counts_.unaddressed_frames;
      return;
    }
    const int bytes = static_cast<int>(frame.ip_packet->GetSize());
    network_.Send(from, *to, bytes, [this, to = *to, frame = std::move(frame), bytes] {
      ++counts_.frames;
      counts_.late_frames += lag_ > kLate;
      counts_.wire_bytes += FrameNetwork::WireBytesOf(bytes);
      devices_[to]->SendFrom(frame.ip_packet, frame.source, frame.destination, frame.protocol);
    });
  }

  FrameNetwork network_;
  const int mtu_;
  std::vector<Descriptor> taps_;  // until they are attached
  const ns3::RealtimeSimulatorImpl* simulator_ = nullptr;
  std::vector<ns3::Ptr<ns3::FdNetDevice>> devices_;  // [host]
  std::atomic<bool> stop_{false};
  std::mutex mutex_;  // of all below, and of network_
  bool running_ = false;
  Time now_{0}, lag_{0};  // of the last event
  EmulationCounts counts_;
  std::exception_ptr error_;
  std::thread thread_;
};

Emulation::Emulation(const Topology& topology, const TcpConfig& tcp, std::vector<Descriptor> taps)
    : carrier_(std::make_unique<Carrier>(topology, tcp, std::move(taps))) {}

Emulation::~Emulation() = default;

EmulationCounts Emulation::Counts() { return carrier_->Counts(); }

const std::vector<Link>& Emulation::links() const { return carrier_->links(); }

}  // namespace spes::sim
