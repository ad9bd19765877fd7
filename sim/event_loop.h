// The owner of virtual time: a queue of events, interleaved with the events of a network model.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "sim/units.h"

namespace spes::sim {

class Network;

// Single-threaded. Events at the same time run in the order in which they were scheduled. An
// exception thrown by an event leaves the loop usable and reaches the caller of Step or Run.
class EventLoop {
 public:
  using EventId = std::uint64_t;

  // `network` may be null (no flows) and must outlive the loop.
  explicit EventLoop(Network* network = nullptr) : network_(network) {}

  // The virtual time; also right within the `done` of a flow.
  Time Now() const;

  // Runs `f` at virtual time `t` (not before Now()) or after `d` (not negative); an earlier time is
  // a std::logic_error. Flows that end at `t` are done before.
  EventId At(Time t, std::function<void()> f);
  EventId After(Time d, std::function<void()> f) { return At(Now() + d, std::move(f)); }

  // No effect when the event has run or was cancelled.
  void Cancel(EventId id);

  // Runs the next event, or lets the network advance up to it. False when there is nothing left to
  // do. A network may return early (see Network::AdvanceTo), so a step lasts about 0.1 s of wall
  // time at most, the events' own work aside: callers show progress and look for Ctrl-C between
  // steps.
  bool Step();

  // Steps until nothing is left or `stop()` says true.
  void Run(const std::function<bool()>& stop = {});

 private:
  Network* network_;
  Time now_{0};
  EventId next_id_ = 1;
  std::map<std::pair<Time, EventId>, std::function<void()>> events_;
  std::map<EventId, Time> due_;
};

}  // namespace spes::sim
