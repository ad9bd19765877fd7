// A node's side of a run on real machines.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "scenarios/scenario.h"
#include "trainer/protocol/peer.h"
#include "trainer/sync/world.h"

namespace spes::app {

// The settings of the peer of `node`, which starts from `world`, where time is the wall clock: what
// steps take is measured. `hash`: of the scenario.
trainer::PeerConfig RealPeerConfig(const scenarios::Scenario& scenario, int node,
                                   const trainer::World& world, std::string hash,
                                   trainer::PeerStore* store);

// Wall seconds of a step of a node that only waits.
std::function<double(std::int64_t step)> WaitSeconds(const scenarios::Scenario& scenario, int node);

}  // namespace spes::app
