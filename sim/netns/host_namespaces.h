// A network namespace for each host of an emulated network.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "sim/netns/descriptor.h"
#include "sim/netns/namespace.h"

namespace spes::sim {

struct HostNamespacesSettings {
  std::string prefix = "spes";    // lower-case letters, digits, - and _, at most 32
  int nodes = 0;                  // N: hosts 0 to N − 1; host N is the coordinator
  std::vector<std::string> macs;  // [N + 1] "02:00:00:00:00:01"
  int mtu = 1500;                 // bytes of an IP packet
  // Of the hosts' TCP where a program asks for nothing else. Empty, 0: the kernel's own.
  std::string congestion = {};
  int initial_window = 0;       // segments
  std::int64_t tcp_buffer = 0;  // bytes that a connection's buffers may grow to
};

// Namespaces PREFIX-node0, … and PREFIX-coordinator that `ip netns` knows. Each has a TAP device
// `wan`, whose other end is this program, and over it a route and the Ethernet address of every
// other host, so that nobody has to ask for one. Connections begin without what the kernel has
// learnt from earlier ones.
//
// All is gone when the object is. A process that is killed leaves the namespaces' names: the next
// of the same prefix takes them away first. Wants root and the ip command.
class HostNamespaces {
 public:
  // Throws std::invalid_argument where the prefix is not one, and std::runtime_error, both with one
  // line: not root, no ip command, no TAP devices, the prefix in use by a process that lives.
  explicit HostNamespaces(const HostNamespacesSettings& settings);

  int hosts() const { return static_cast<int>(spaces_.size()); }
  const Namespace& space(int host) const { return spaces_[host]; }
  const std::string& name(int host) const { return names_[host]; }
  std::string Address(int host) const;  // "10.77.0.1" and so on

  // [host] the other ends of the devices, which block; once.
  std::vector<Descriptor> TakeTaps() { return std::move(taps_); }

  // Packets that the hosts' devices could not take or give, all together.
  std::int64_t DroppedByDevices() const;

 private:
  Descriptor lock_;
  std::vector<std::string> names_;
  std::deque<Namespace> spaces_;
  std::vector<Descriptor> taps_;
};

}  // namespace spes::sim
