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
// A flow runs over connections of its own, one per stream, as if they had been idle: open, with an
// initial window and a known round trip. Buffers let a lone flow fill its bottleneck and the queue
// there without overflowing it.
//
// Not modelled: SYN cookies, ECN, pacing, active queue management, hosts that are slow to read.
//
// At most one at a time in a process (ns-3 has one simulator): a second throws std::logic_error.
// The destructor frees the simulator for the next. Throws std::invalid_argument as
// Topology::Validate and TcpConfig::Validate do.
std::unique_ptr<Network> MakePacketNetwork(const Topology& topology, const TcpConfig& tcp);

// The coarse level: the same with segments TcpConfig::coarse_factor times as large, and less work
// by that factor. The initial window stays the same in bytes, headers and queues too; a segment is
// lost as often as makes the rate under random loss that of real segments: the probability grows
// with the factor to the power of 4/3 where CUBIC follows its own law, and with its square where a
// connection follows Reno's (RFC 9438, sections 5.1 and 4.3).
std::unique_ptr<Network> MakeCoarseNetwork(const Topology& topology, const TcpConfig& tcp);

// The hybrid level: packets as above until flows are steady, then their bytes pass without packets
// until something changes: fast_forward.h. Round trips, and losses on links that are not full, are
// those of the packets that were sent. Many times faster than packets where transfers are long and
// the network constant; where capacities change faster than TCP settles it is the packet level.
std::unique_ptr<Network> MakeHybridNetwork(const Topology& topology, const TcpConfig& tcp);

}  // namespace spes::sim
