// From a scenario to the exchange pattern of its rounds.
#pragma once

#include "scenarios/origins.h"
#include "scenarios/scenario.h"
#include "sim/topology.h"
#include "trainer/protocol/exchange_schedule.h"

namespace spes::scenarios {

// As Validate, which calls it: what network.exchange asks for fits together, and with the rounds.
void ValidateExchange(const Scenario& scenario, const Origins& origins);

// `topology`: of the scenario, as BuildTopology makes it.
trainer::ExchangeConfig BuildExchange(const Scenario& scenario, const sim::Topology& topology);

}  // namespace spes::scenarios
