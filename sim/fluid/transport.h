// What a transport protocol makes of a flow that is otherwise a liquid: how it gets under way, how
// it competes, what holds it back besides the links, and what it costs on the wire.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/network.h"
#include "sim/units.h"

namespace spes::sim {

// The plan of one flow. Bytes are of payload, rates in bytes per ns.
struct Course {
  // A part of the flow. Whether anything has been lost by then is a matter of chance, and so is
  // the rate; what counts is how long a byte takes on average.
  struct Stage {
    double until = 0;  // bytes that have arrived
    double clean = 1;  // probability that nothing has been lost
    double lossy = 0;  // ns per byte where something has, times the probability of that
  };

  double weight = 1;  // where it competes
  Time latency{0};    // until the first byte can be there
  double rtt_ns = 0;  // of an empty path
  double loss = 0;    // of a packet on its way
  // ns per byte that the links ask for at least; counts where losses do.
  double fastest = 0;
  double window = 0;          // the first, in bytes
  double increment = 0;       // a segment of each stream, in bytes
  std::vector<Stage> stages;  // at least one; the last is until the end

  // The most that a flow with this window takes.
  double Cap(std::size_t stage, double bytes_of_window) const {
    const Stage& s = stages[stage];
    return 1 / (s.clean * std::max(rtt_ns / bytes_of_window, fastest) + s.lossy);
  }
};

class Transport {
 public:
  virtual ~Transport() = default;

  // Payload bytes per byte on the wire, headers alone counted.
  virtual double efficiency() const = 0;
  // Whether control flows go before bulk flows.
  virtual bool priorities() const = 0;
  // Whether a flow has a window, which doubles with each round trip until the flow fills its share,
  // and then grows as Grown says when there is more to be had.
  virtual bool windows() const = 0;

  // For a flow that starts at `now`; `met`: its hosts have an open connection.
  virtual Course Plan(const Flow& flow, Time now, bool met) const = 0;

  // The flow's weight where the queue of the full link that it shares with others takes `wait_ns`
  // to cross.
  virtual double Weight(const Flow& flow, const Course& course, double wait_ns) const = 0;

  // How much of a queue of `wait_ns` a packet finds taken when the link is full.
  virtual double Queued(double wait_ns) const = 0;

  // Slow start has filled a link and its queue: what becomes of a window, in bytes, that just fits.
  virtual double AfterOvershoot(double window) const = 0;

  // What becomes of a window when the link that holds its flow has lost capacity, and a full queue
  // and what is under way at the new rate come to `fits` bytes.
  virtual double AfterNarrowing(double window, double fits) const = 0;
  // And after an outage.
  virtual double AfterOutage(const Course& course, double window, Time outage) const = 0;

  // The ns in which a window grows from `from`, where it has been for a while, to `to`. `first`:
  // the window after slow start; 0 when an outage or a loss of capacity has shrunk it since.
  virtual double GrowNs(const Course& course, double from, double to, double first) const = 0;

  // Of retransmission (RTO).
  virtual Time Timeout(const Course& course) const = 0;

  // Fills in what follows from delivered_bytes: wire_bytes, retransmissions, dropped_packets and
  // round trips, of which `wait_ns` are spent in queues on average.
  virtual void Count(const Course& course, double wait_ns, FlowResult* result) const = 0;

  // Bytes that the acknowledgements of so much payload take on the way back.
  virtual double AckBytes(const Flow& flow, double delivered_bytes) const = 0;
};

}  // namespace spes::sim
