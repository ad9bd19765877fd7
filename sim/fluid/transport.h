// What a transport protocol makes of a flow that is otherwise a liquid: how it gets under way, how
// it competes, what holds it back besides the links, and what it costs on the wire.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/network.h"
#include "sim/units.h"

namespace spes::sim {

// The plan of one flow. Bytes are of payload, rates in bytes per ns.
struct Course {
  // While this holds, the flow takes no more than `cap`.
  struct Stage {
    double until = 0;  // bytes that have arrived
    double cap = 0;
  };

  double weight = 1;          // where it competes
  Time latency{0};            // until the first byte can be there
  double rtt_ns = 0;          // of an empty path
  double loss = 0;            // of a packet on its way
  double window = 0;          // the first, in bytes
  double increment = 0;       // a segment of each stream, in bytes
  std::vector<Stage> stages;  // at least one; the last is until the end
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

  // Slow start has filled a link whose queue takes `wait_ns` to cross: how long windows double on.
  virtual double OvershootNs(double wait_ns) const = 0;
  // What is left of such a window after that, in bytes.
  virtual double AfterOvershoot(double window) const = 0;

  // The ns in which a window grows from `from`, where it has been for a while, to `to`.
  virtual double GrowNs(const Course& course, double from, double to) const = 0;

  // Fills in what follows from delivered_bytes: wire_bytes, retransmissions, dropped_packets and
  // round trips, of which `wait_ns` are spent in queues on average.
  virtual void Count(const Course& course, double wait_ns, FlowResult* result) const = 0;

  // Bytes that the acknowledgements of so much payload take on the way back.
  virtual double AckBytes(const Flow& flow, double delivered_bytes) const = 0;
};

}  // namespace spes::sim
