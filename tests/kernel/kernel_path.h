// A path with one bottleneck through the Linux kernel.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "sim/netns/namespace.h"
#include "sim/units.h"
#include "tests/kernel/tun_relay.h"

namespace spes::kernel {

struct PathSettings {
  double bps = 0;        // of the bottleneck, towards the receiver
  sim::Time rtt{0};      // when the queue is empty
  double queue_bdp = 1;  // of the bottleneck, in bps × rtt
};

// Why this machine cannot make such a path, or run TCP with this congestion control over it:
// "not root", "no TUN devices: ..."; empty when it can.
std::string WhatIsMissing(const std::string& congestion);

// Three namespaces:
//
//     sender ── TunRelay, rtt/2 each way ── router ── veth, tbf towards the receiver ── receiver
//
// The queue is not at the sender, whose TCP would notice it and hold back ("small queues"). It is
// drop-tail and holds as many full segments as the packet level's. The kernel's buckets count
// Ethernet headers, where the packet level has PPP's: the rate is raised so that a full segment
// takes the same time in both.
class KernelPath {
 public:
  // Throws std::runtime_error.
  explicit KernelPath(const PathSettings& settings);

  const PathSettings& settings() const { return settings_; }
  const sim::Namespace& sender() const { return sender_; }
  const sim::Namespace& receiver() const { return receiver_; }
  static std::string ReceiverAddress() { return "10.9.1.2"; }

  // What the queue can hold, in wire bytes as the packet level counts them.
  double QueueBytes() const;

  struct Drops {
    std::int64_t queue = 0;      // by the bottleneck, as it should
    std::int64_t elsewhere = 0;  // by devices or the relay: what was measured is worth nothing
  };
  // So far. Throws std::runtime_error.
  Drops drops() const;

  // The share of packets so far that took more than a millisecond too long.
  double LateShare() const;

 private:
  const PathSettings settings_;
  sim::Namespace sender_, router_, receiver_;
  std::unique_ptr<TunRelay> relay_;
};

}  // namespace spes::kernel
