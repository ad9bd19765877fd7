// The packet level: every segment of every flow through ns-3's TCP, queues and links.
#pragma once

#include <memory>

#include "sim/network.h"

namespace spes::sim {

// At most one at a time in a process (ns-3 has one simulator): a second throws std::logic_error.
// The destructor frees the simulator for the next.
std::unique_ptr<Network> MakePacketNetwork(const Topology& topology, const TcpConfig& tcp);

}  // namespace spes::sim
