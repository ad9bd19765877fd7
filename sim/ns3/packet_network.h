// The packet level: every segment of every flow through TCP, queues and links.
#pragma once

#include <memory>

#include "sim/network.h"

namespace spes::sim {

// TCP is ns-3's own (CUBIC or Reno, SACK, timestamps, delayed acknowledgements), its time is ns-3's
// simulator, stepped by us. The network below it is ours: a segment crosses the links of its route,
// each with its rate and delay over time, drop-tail queue and random loss in each direction,
// acknowledgements included. On the wire a full segment takes 54 bytes more than its payload (TCP
// with timestamps, IPv4, PPP).
//
// A flow runs over connections of its own, one per stream, as if they had been idle: open, with a
// known round trip, and with an initial window or what the flow before it has learnt
// (TcpConfig::after_idle): the threshold of slow start and CUBIC's last largest window. Buffers let
// a lone flow fill its bottleneck and the queue there without overflowing it.
//
// Not modelled: SYN cookies, ECN, pacing, active queue management, hosts that are slow to read.
//
// At most one at a time in a process (ns-3 has one simulator): a second throws std::logic_error.
// The destructor frees the simulator for the next. Throws std::invalid_argument as
// Topology::Validate and TcpConfig::Validate do.
std::unique_ptr<Network> MakePacketNetwork(const Topology& topology, const TcpConfig& tcp);

// The coarse level: the same with segments up to TcpConfig::coarse_factor times as large (65,000
// bytes at most), and less work by that factor; ordinary ones where a transfer is short or a
// bandwidth-delay product small. In bytes and seconds all stays the same: initial window, headers,
// queues, the losses (a segment is lost as often as one of those it stands for) and the growth of
// the window (coarse_congestion.h).
std::unique_ptr<Network> MakeCoarseNetwork(const Topology& topology, const TcpConfig& tcp);

// The hybrid level: packets as above, coarse ones in long transfers while they are alone, until
// flows are steady, then their bytes pass without packets until something changes: fast_forward.h.
// Round trips, and losses on links that are not full, are those of the packets that were sent. Many
// times faster than packets where transfers are long and the network constant; where capacities
// change faster than TCP settles it is the packet level.
std::unique_ptr<Network> MakeHybridNetwork(const Topology& topology, const TcpConfig& tcp);

}  // namespace spes::sim
