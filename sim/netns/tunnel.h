// Network devices whose other end is this program.
#pragma once

#include <string>

#include "sim/netns/descriptor.h"
#include "sim/netns/namespace.h"

namespace spes::sim {

struct TunnelSettings {
  enum class Carries { kIpPackets, kEthernetFrames };  // TUN, TAP
  Carries carries = Carries::kIpPackets;
  std::string device;    // its name, up to 15 characters
  std::string mac = {};  // of a device for frames, "02:00:00:00:00:01"; empty: chosen at random
  std::string address;   // "10.0.0.1/24"
  int mtu = 1500;        // bytes of an IP packet
  int queue_length = 10'000;  // packets that wait until the program reads them
  bool blocking = false;      // what reading does where nothing waits
};

// Makes the device in the namespace and brings it up. Each read from the descriptor takes what the
// namespace's hosts send, one packet or frame; each write hands one to them. It takes no segments
// larger than its MTU and leaves no checksums to others, so that packets are what a wire would
// carry. The device goes when the descriptor is closed. Throws std::runtime_error.
Descriptor OpenTunnel(const Namespace& space, const TunnelSettings& settings);

}  // namespace spes::sim
