// What a node's parameters, gradients and moments take, and what this process takes and for what.
#pragma once

#include <cstdint>

#include "analysis/recorder.h"
#include "scenarios/scenario.h"
#include "trainer/sync/allocation.h"

namespace spes::app {

// Bytes that a node of a real run keeps for good: all parameters, and gradients and two moments of
// those it trains; with P elements in all, t trainable, b bytes each: b·(P + 3t). Training
// everything: b·4P. Codes of differences and error feedback take b·t more each. A node of
// data-parallel training keeps parameters and gradients: b·2P.
std::int64_t NodeBytes(const scenarios::Scenario& scenario, const trainer::BlockTable& table,
                       std::int64_t trainable_elements);

// The resident size of this process before there was a model, and with its data.
struct ProcessStart {
  std::int64_t program_bytes = 0, data_bytes = 0;
};

// One row per node and kind (measured −1), and one per kind for this process: the world and what it
// is reduced to, each node's own values and moments, uploads that wait for their round's end, and
// gradients and activations of each worker, but for what is on GPUs; at last their sum beside the
// largest resident size.
void RecordMemory(const scenarios::Scenario& scenario, const trainer::Allocation& allocation,
                  const trainer::BlockTable& table, int workers, const ProcessStart& start,
                  analysis::Recorder& recorder);

// Bytes; −1 where the system does not tell.
std::int64_t PeakResidentBytes();
std::int64_t ResidentBytes();

}  // namespace spes::app
