// What carries bytes between hosts in virtual time. One interface, several levels of fidelity.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/link_graph.h"
#include "sim/topology.h"
#include "sim/units.h"

namespace spes::sim {

using FlowId = std::uint64_t;

// Control messages must not starve behind bulk data. At the packet level they, and their
// acknowledgements, pass all bulk segments in every queue.
enum class TrafficClass { kControl, kBulk };

// A transfer from host `from` to host `to` (indices of Topology::hosts).
struct Flow {
  int from = 0;
  int to = 0;
  std::int64_t bytes = 0;  // payload, may be 0; more than 2 GiB and 4 GiB are ordinary
  int streams = 1;         // parallel TCP connections that share the payload evenly
  TrafficClass traffic_class = TrafficClass::kBulk;
  bool stranger = false;  // over connections of its own, which are new: nothing is remembered
};

enum class FlowOutcome { kDone, kCancelled, kStalled, kFailed };
std::string_view Name(FlowOutcome outcome);

struct FlowResult {
  FlowId id = 0;
  Flow flow;
  Time start{0};
  Time end{0};                       // the last payload byte is at the receiver
  std::int64_t delivered_bytes = 0;  // payload at the receiver
  // Sent by `from` for this flow: payload, headers, retransmissions.
  std::int64_t wire_bytes = 0;
  std::int64_t retransmitted_bytes = 0;  // payload sent more than once
  // Segments; at the coarse level as many as the large ones that were sent again stand for, which
  // is more than were dropped: where random loss takes one segment, a large one is sent again.
  std::int64_t retransmissions = 0;
  // Segments sent by `from` and lost, in queues and on the wire, wherever on the path.
  std::int64_t dropped_packets = 0;
  // As the sender measured them, one segment at a time; nothing where the level has no round trips
  // or the flow was over before the first acknowledgement.
  std::optional<Time> rtt_min, rtt_mean;
  FlowOutcome outcome = FlowOutcome::kDone;
};

// What a link has carried since the start.
struct LinkUsage {
  std::int64_t wire_bytes = 0;  // sent over it: payload, headers, retransmissions, acknowledgements
  // In its queue and on its wire; 0 where the level has no packets.
  std::int64_t dropped_packets = 0;
};

// Single-threaded; driven by an EventLoop. While it advances, the network is the one who knows the
// time, so EventLoop::Now asks it. Flows run over connections that
// are already open and have idled; what they remember of their last transfer is up to
// TcpConfig::after_idle. No handshake is paid, except at the first contact of a pair of hosts that
// Prepare has not named.
class Network {
 public:
  using OnDone = std::function<void(const FlowResult&)>;

  virtual ~Network() = default;

  // The virtual time reached: 0 before the first AdvanceTo; within a `done`, the flow's end.
  virtual Time Now() const = 0;

  // Opens connections from `from` to `to` ahead of time. Only before the first AdvanceTo.
  virtual void Prepare(int from, int to, int streams) = 0;

  // Starts a flow at Now. `done` is called exactly once, from within AdvanceTo, whatever the
  // outcome: a flow that makes no progress for TcpConfig::stall_timeout ends as kStalled. `done`
  // may start and cancel flows; an exception it throws reaches the caller of AdvanceTo and leaves
  // the network usable. Throws std::invalid_argument on a host or size out of range, or when both
  // ends are the same host.
  virtual FlowId Start(const Flow& flow, OnDone done) = 0;

  // Ends the flow as kCancelled; `done` is called within the next AdvanceTo. No effect on ended
  // flows.
  virtual void Cancel(FlowId id) = 0;

  // A lower bound for the time of the next completion; nothing when no flow is active. A cancelled
  // flow is active until its `done` has been called.
  virtual std::optional<Time> NextEvent() const = 0;

  // Lets virtual time pass up to `t` (not before Now) and returns the time reached: earlier than
  // `t` when flows completed (their `done` has been called at that time) or when about 0.1 s of
  // wall time went by. Flows that complete at `t` itself are done when it returns `t`. With kNever
  // it throws std::runtime_error where virtual time is too short for a flow (292 years).
  virtual Time AdvanceTo(Time t) = 0;

  // The links it runs on.
  virtual const LinkGraph& graph() const = 0;

  // [link of graph()] up to Now. Costs time: for use now and then.
  virtual std::vector<LinkUsage> Usage() const = 0;
};

// Throws std::invalid_argument with one line when a flow names no two hosts of the graph, a
// negative size or no stream: what every level checks in Start.
void CheckFlow(const Flow& flow, const LinkGraph& graph);

// The ideal level: latency and max-min fair shares of the links, without TCP: no start-up, no
// losses, no headers. A flow with k streams counts k times at every link. A lower bound of what the
// other levels need. Throws std::invalid_argument as Topology::Validate and TcpConfig::Validate do.
// The packet level is in sim/ns3/packet_network.h.
std::unique_ptr<Network> MakeIdealNetwork(const Topology& topology, const TcpConfig& tcp);

}  // namespace spes::sim
