// A topology in real time: what real hosts send crosses its links.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/netns/descriptor.h"
#include "sim/network.h"
#include "sim/topology.h"
#include "sim/units.h"

namespace spes::sim {

// An Ethernet address, made from a host's index in the topology: 02:00:00:00:00:00 and upwards.
std::string MacOfHost(int host);

// What an emulation has done since its start.
struct EmulationCounts {
  std::int64_t frames = 0;              // that reached their host
  std::int64_t wire_bytes = 0;          // of these, as links count them
  std::int64_t late_frames = 0;         // of these, those more than Emulation::kLate late
  std::int64_t unaddressed_frames = 0;  // to no other host of the topology: ignored
  // How far real time was ahead of the network's when it came to what was due: the largest, and the
  // largest since the counts were last asked for. A frame that was so late was carried so late.
  Time lag{0}, recent_lag{0};
  std::vector<LinkUsage> links;               // [link]
  std::vector<std::int64_t> queue_overflows;  // [link] of its dropped packets
};

// ns-3 carries whole Ethernet frames between the descriptors of hosts, each of which gives a frame
// for each read and takes one for each write (a TAP device; a socket that keeps boundaries). Where
// a frame goes is decided by its destination's MacOfHost alone; broadcasts and the like go nowhere.
// Links are those of the packet level (link_queue.h), with everything that a topology can say of
// them; all traffic is bulk. A frame counts on them with its IP packet and 2 bytes, as a segment of
// the packet level does: 1502 bytes for a full segment of 1448. Time of traces and conditions runs
// from the start.
//
// Real time is ns-3's RealtimeSimulatorImpl, set for as long as this lives: as with the packet
// level, at most one at a time in a process. It follows the system's clock, which should not be set
// meanwhile. A thread per host reads, one carries; they go before ordinary processes where they may
// (SCHED_RR). What the machine cannot keep up with is late (see `lag`), and when ever more of it
// waits, dropped by the devices in front, whose namespaces count that.
class Emulation {
 public:
  static constexpr int kMostHosts = 128;
  static constexpr Time kLate = std::chrono::milliseconds(20);

  // Bytes of the longest IP packet: a segment with the headers of TCP, timestamps included, and
  // IPv4.
  static constexpr int Mtu(const TcpConfig& tcp) { return tcp.segment_bytes + 52; }

  // taps: [host]; they must block, and are closed at the end. Throws std::invalid_argument as
  // LinkGraph does and for more hosts than kMostHosts, std::logic_error while the simulator is
  // taken.
  Emulation(const Topology& topology, const TcpConfig& tcp, std::vector<Descriptor> taps);
  ~Emulation();

  // Any thread. Throws what has ended the emulation, if anything has.
  EmulationCounts Counts();

  const std::vector<Link>& links() const;

 private:
  class Carrier;
  std::unique_ptr<Carrier> carrier_;
};

}  // namespace spes::sim
