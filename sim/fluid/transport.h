// What a transport protocol makes of a flow that is otherwise a liquid: how long it takes to get
// under way, how it competes, what holds it back besides the links, and what it costs on the wire.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/network.h"
#include "sim/units.h"

namespace spes::sim {

// The plan of one flow. Rates are in bytes of payload per ns.
struct Course {
  // While this holds, the flow takes no more than `cap`.
  struct Stage {
    double until = 0;  // payload bytes that have arrived
    double cap = 0;
  };

  double weight = 1;          // of the flow where it competes
  Time latency{0};            // until the first byte is there, start-up left out
  double rtt_ns = 0;          // of an empty path
  double loss = 0;            // of a packet on its way
  std::vector<Stage> stages;  // at least one; the last is until the end
};

class Transport {
 public:
  virtual ~Transport() = default;

  // Payload bytes per byte on the wire, headers alone counted.
  virtual double efficiency() const = 0;
  // Whether control flows go before bulk flows.
  virtual bool priorities() const = 0;
  // Whether StartUp is more than 0.
  virtual bool starts_slowly() const = 0;

  // For a flow that starts at `now`; `met`: its hosts have an open connection.
  virtual Course Plan(const Flow& flow, Time now, bool met) const = 0;

  // The time that the flow loses until it fills its share of the path, bytes/ns, positive.
  virtual Time StartUp(const Flow& flow, const Course& course, double share) const = 0;

  // The flow's weight where the queue of the full link that it shares with others takes `wait_ns`
  // to cross.
  virtual double Weight(const Flow& flow, const Course& course, double wait_ns) const = 0;

  // Fills in what follows from delivered_bytes: wire_bytes, retransmissions, dropped_packets and
  // round trips; `wait_ns`: of its packets in full queues, were those full to the brim.
  virtual void Count(const Course& course, double wait_ns, FlowResult* result) const = 0;

  // Bytes that the acknowledgements of so much payload take on the way back.
  virtual double AckBytes(const Flow& flow, double delivered_bytes) const = 0;
};

}  // namespace spes::sim
