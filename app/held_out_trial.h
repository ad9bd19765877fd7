// How the coordinator tries out what nodes send.
#pragma once

#include "scenarios/scenario.h"
#include "trainer/data/dataset.h"
#include "trainer/protocol/trust.h"

namespace spes::app {

// With sync.trust.held_out, sets `trust.held_out`: the mean cross-entropy, nats per token, on whole
// held-out samples, evenly spaced over those that evaluations use and shared out evenly among the
// domains, `held_out` tokens in all (rounded up to a sample of each domain) or what there is. It
// keeps the tokens.
void SetHeldOutTrial(const scenarios::Scenario& scenario, const trainer::Dataset& dataset,
                     trainer::TrustConfig& trust);

}  // namespace spes::app
