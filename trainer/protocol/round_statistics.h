// What the log says about a published round.
#pragma once

#include <vector>

#include "analysis/records.h"
#include "trainer/node.h"
#include "trainer/protocol/messages.h"
#include "trainer/protocol/world_update.h"
#include "trainer/sync/allocation.h"
#include "trainer/sync/world.h"

namespace spes::trainer {

// ‖a − b‖₂², added in double. Buffers of one size.
double SquaredDistance(DType dtype, const Buffer& a, const Buffer& b);

// For each block of the offer ‖own − world‖₂², in double.
std::vector<double> SquaredMoves(const Offer& offer, const World& world);

// ‖after − before‖₂ for each block, in double.
std::vector<double> UpdateNorms(const World& before, const World& after);

// One row per layer that has experts. `sums`: of all nodes that arrived.
std::vector<analysis::RoutingRecord> RoutingRows(int round, const RoutingCounts& sums);

struct ExpertInputs {
  const BlockTable& table;
  const RoutingCounts& routing;  // of all nodes that arrived
  const WorldUpdate& update;
  const Allocation& allocation;
  const std::vector<Version>& delivered;  // [block]: round of the last contribution
};

// One row per expert of each layer.
std::vector<analysis::ExpertRecord> ExpertRows(int round, const ExpertInputs& in);

}  // namespace spes::trainer
