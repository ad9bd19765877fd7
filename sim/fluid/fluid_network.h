// The fluid level: TCP without packets.
#pragma once

#include <memory>

#include "sim/network.h"

namespace spes::sim {

// Flows drain at weighted max-min fair shares of the links, headers taken off, as far as their
// windows allow. A window doubles each round trip until the flow fills its share, or slow start has
// filled a link and its queue; then it grows as CUBIC's or Reno's does while it holds its flow
// back. Random losses hold a flow to what its congestion control keeps up under them. Control flows
// come first. Capacities and round trips follow the conditions over time.
//
// Not modelled: the queues themselves (what overflows them is not counted, and a control flow waits
// for nobody), what acknowledgements take of the other direction (Usage counts them), streams of a
// transfer that end apart, windows that shrink when more flows come to share a link.
//
// Throws std::invalid_argument as Topology::Validate and TcpConfig::Validate do.
std::unique_ptr<Network> MakeFluidNetwork(const Topology& topology, const TcpConfig& tcp);

}  // namespace spes::sim
