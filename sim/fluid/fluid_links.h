// The links as flows without packets see them: what they carry now, when that changes, and what
// they have carried.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "sim/fluid/drains.h"
#include "sim/fluid/timers.h"
#include "sim/network.h"
#include "sim/units.h"

namespace spes::sim {

// Keeps the capacities of both sorts of flows: control flows may take all of a link, bulk flows
// what those leave. Links that no flow uses cost nothing, however often they change.
class FluidLinks {
 public:
  // `efficiency`: payload bytes per byte on the wire. All must outlive it.
  FluidLinks(const LinkGraph& graph, double efficiency, Drains* control, Drains* bulk);

  // A flow over these links begins, at `now`, or ends.
  void Use(std::span<const int> route, Time now);
  void Release(std::span<const int> route);

  // When the rate or the delay of a link in use changes next; kNever when none does.
  Time next() const { return changes_.next(); }
  // Carries out the changes due at `now`.
  struct Changed {
    int link;
    bool delay;      // another delay
    bool narrower;   // less capacity, but some
    Time outage{0};  // that ends now; 0: none does
  };
  std::vector<Changed> Change(Time now);

  // (link, bytes/ns) that control flows take from now on, several entries of a link added up.
  void SetTaken(std::vector<std::pair<int, double>> taken);

  // The time that the queue of the link takes to cross when it is full, at the rate of now.
  double WaitNs(int link) const;

  // Adds what a flow, of whose packets a share `loss` is lost on the way, has sent, and the
  // acknowledgements it got.
  void AddUsage(const FlowResult& result, double loss, double ack_bytes,
                std::vector<LinkUsage>* usage) const;

 private:
  void Read(int link, Time now);
  void SetCapacity(int link);

  const LinkGraph& graph_;
  const double efficiency_;
  Drains& control_;
  Drains& bulk_;
  Timers changes_;             // by link
  std::vector<int> uses_;      // [link] flows
  std::vector<double> rate_;   // [link] payload bytes/ns now, where in use
  std::vector<double> taken_;  // [link] of that, by control flows
  std::vector<std::pair<int, double>> taken_by_;
  std::vector<Time> down_since_;  // [link] in use: the beginning of the outage, if there is one
};

}  // namespace spes::sim
