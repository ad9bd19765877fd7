// How long rounds will take, without training anything: step times from the cost model, exchanges
// over a network model.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/network.h"
#include "trainer/protocol/exchange_schedule.h"

namespace spes::trainer {

struct ForecastConfig {
  std::int32_t rounds = 1;                                             // at most the schedule's
  std::function<sim::Time(NodeId node, std::int64_t step)> step_time;  // steps from 1
  int streams = 1;
  int sends = 0;  // transfers of a host at once, 0: no limit
  // May be empty. Called about every 0.1 s of wall time or more often, with the rounds that are
  // over and the virtual time.
  std::function<void(std::int32_t rounds, double virtual_s)> progress = {};
};

// Of one node, over all rounds. Its time is the sum of the three parts.
struct NodeForecast {
  double compute_s = 0;
  double exchange_s = 0;  // it has computed, and sends or receives
  double wait_s = 0;      // it has computed, and nothing moves from or to it
  std::int64_t up_bytes = 0, down_bytes = 0;

  double total_s() const { return compute_s + exchange_s + wait_s; }
  double utilisation() const { return total_s() > 0 ? compute_s / total_s() : 0; }
};

struct LinkForecast {
  std::string name;
  std::int64_t wire_bytes = 0;
  double utilisation = 0;  // wire bytes ÷ (nominal rate × total_s)
};

struct Forecast {
  std::int32_t rounds = 0;
  double total_s = 0;  // until the last node is through the last round
  std::vector<NodeForecast> nodes;
  LinkForecast busiest;  // the link of the highest utilisation, whoever's traffic it carries
  std::int64_t flows = 0;

  // Whom the others wait for: the node that waits least, the first among equals.
  int SlowestNode() const;
};

// Rounds from virtual time 0 by `schedule`, whose hosts must be the first of `network`'s. With the
// pattern coordinator a node begins its next round as soon as it has its values, as in training;
// with any other when all have, for there the coordinator ends the round when it has word from
// everyone. Steps that a round may train ahead are trained while its exchange goes on. Throws
// std::runtime_error with one line that names round and hosts when a transfer fails.
Forecast MakeForecast(const ExchangeSchedule& schedule, const ForecastConfig& config,
                      sim::Network& network);

}  // namespace spes::trainer
