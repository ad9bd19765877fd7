// The fluid level: TCP without packets.
#pragma once

#include <memory>

#include "sim/network.h"

namespace spes::sim {

// Each flow loses the time of slow start and then drains at its weighted max-min fair share of the
// links, headers taken off. Random losses hold it to the window that its congestion control keeps
// up under them. Control flows come first. Capacities and round trips follow the conditions over
// time. Queues are not modelled: what overflows them is not counted, and acknowledgements are
// counted in Usage but take no capacity. Throws std::invalid_argument as Topology::Validate and
// TcpConfig::Validate do.
std::unique_ptr<Network> MakeFluidNetwork(const Topology& topology, const TcpConfig& tcp);

}  // namespace spes::sim
