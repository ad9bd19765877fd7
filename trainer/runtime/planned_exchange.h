// Rounds whose parameters travel by the plans of an exchange schedule.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "analysis/recorder.h"
#include "sim/network.h"
#include "sim/traffic/plan_runner.h"
#include "trainer/protocol/exchange_schedule.h"

namespace spes::trainer {

// One round after the other: the next one begins when the first node is ready for it, and all nodes
// must be through the last one by then. Its flows are in the log under the pattern's name.
class PlannedExchange {
 public:
  // `finished`: called on the loop's thread when the node's part of the round is over, maybe within
  // Ready. References must outlive the exchange. `options`: of each round's runner.
  PlannedExchange(std::shared_ptr<const ExchangeSchedule> schedule, sim::Network& network,
                  analysis::Recorder& recorder, sim::PlanRunner::Options options,
                  std::function<void(NodeId)> finished);

  // Whether the node has still to take part in `round`, which is at hand or the next.
  bool Awaits(NodeId node, std::int32_t round) const;

  // The node has its result of `round`, which awaits it. When a transfer of the round fails,
  // std::runtime_error with one line that names it reaches the owner of the event loop: no node
  // could end the round.
  void Ready(NodeId node, std::int32_t round);

 private:
  sim::PlanRunner& runner(std::int32_t round) const {
    return *runners_[static_cast<std::size_t>(schedule_->KindOf(round))];
  }
  void OnFlow(const sim::FlowResult& result);

  std::shared_ptr<const ExchangeSchedule> schedule_;
  analysis::Recorder& recorder_;
  std::function<void(NodeId)> finished_;
  std::int32_t round_ = 0;                                 // at hand
  std::vector<std::unique_ptr<sim::PlanRunner>> runners_;  // [kind of round]
};

}  // namespace spes::trainer
