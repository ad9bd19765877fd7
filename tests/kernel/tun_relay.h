// A wire with a delay between two network namespaces, carried in user space.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <thread>

#include "sim/netns/descriptor.h"
#include "sim/netns/namespace.h"
#include "sim/units.h"

namespace spes::kernel {

// Two TUN devices, one in each namespace: a packet that is routed into one comes out of the other
// exactly `one_way` later, in order, at any rate. A thread carries the packets; it sleeps until a
// packet comes or is due. TUN devices take no segments larger than their MTU of 1500 bytes, so
// packets are what the wire would carry, and they free the sender's socket from counting them
// against what it may queue locally, as a network card does once it has sent them.
class TunRelay {
 public:
  struct Counts {
    std::int64_t packets = 0;  // delivered, both directions
    std::int64_t dropped = 0;  // taken and not delivered
    std::int64_t late = 0;     // delivered more than a millisecond after their time
  };

  // The devices are called `device` in both namespaces, and are up, with the addresses given
  // ("10.0.0.1/24"). Throws std::runtime_error.
  TunRelay(const std::string& device, const sim::Namespace& a, const std::string& address_a,
           const sim::Namespace& b, const std::string& address_b, sim::Time one_way);
  ~TunRelay();
  TunRelay(const TunRelay&) = delete;
  TunRelay& operator=(const TunRelay&) = delete;

  // What happened so far. Any thread. Packets that a device dropped because the thread was too slow
  // are in sim::Namespace::DroppedByDevices. Throws what ended the thread, if anything has.
  Counts counts() const;

 private:
  static constexpr int kMtu = 1500;

  struct Packet {
    std::int64_t due;  // ns of the monotonic clock
    int size;
    std::array<char, kMtu> bytes;
  };
  struct Direction {
    int from, to;  // file descriptors
    std::deque<Packet> waiting;
  };

  void Loop();
  bool Take(Direction& direction);
  void Give(Direction& direction);
  void Rest();

  const sim::Time one_way_;
  sim::Descriptor a_, b_, timer_, stop_, wake_;
  std::array<Direction, 2> directions_;
  std::atomic<std::int64_t> packets_{0}, dropped_{0}, late_{0};
  std::exception_ptr error_;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

}  // namespace spes::kernel
