// What a node's parameters, gradients and moments take, and what this process takes.
#pragma once

#include <cstdint>

#include "analysis/recorder.h"
#include "trainer/sync/allocation.h"

namespace spes::app {

// Bytes that a node of a real run keeps for good: all parameters, and gradients and two moments of
// those it trains; with P elements in all, t trainable, b bytes each: b·(P + 3t). Training
// everything: b·4P.
std::int64_t NodeBytes(const trainer::BlockTable& table, std::int64_t trainable_elements);

// One row per node for SPES (measured −1), and the largest resident size of this process so far.
void RecordMemory(const trainer::Allocation& allocation, const trainer::BlockTable& table,
                  analysis::Recorder& recorder);

// Bytes; −1 where the system does not tell.
std::int64_t PeakResidentBytes();

}  // namespace spes::app
