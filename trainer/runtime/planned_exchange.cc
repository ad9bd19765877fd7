#include "trainer/runtime/planned_exchange.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "trainer/runtime/flow_record.h"

namespace spes::trainer {

PlannedExchange::PlannedExchange(std::shared_ptr<const ExchangeSchedule> schedule,
                                 sim::Network& network, analysis::Recorder& recorder,
                                 sim::PlanRunner::Options options,
                                 std::function<void(NodeId)> finished)
    : schedule_(std::move(schedule)), recorder_(recorder), finished_(std::move(finished)) {
  for (int kind = 0; kind < schedule_->kinds(); ++kind) {
    runners_.push_back(std::make_unique<sim::PlanRunner>(
        schedule_->plan(kind), schedule_->hosts(), network, options,
        sim::PlanRunner::Events{
            .host_finished =
                [this](int host) {
                  if (host < schedule_->nodes()) finished_(host);
                },
            .finished = {},
            .flow = [this](int, const sim::FlowResult& result) { OnFlow(result); },
            .failed =
                [this](int, const sim::FlowResult& result) {
                  throw std::runtime_error(schedule_->FailureText(round_, result));
                }}));
    runners_.back()->Prepare();
  }
}

bool PlannedExchange::Awaits(NodeId node, std::int32_t round) const {
  return round > round_ ||
         (round == round_ && runner(round).running() && !runner(round).ready(node));
}

void PlannedExchange::Ready(NodeId node, std::int32_t round) {
  if (round > round_) {
    if (round_ > 0 && runner(round_).running()) {
      throw std::logic_error("an exchange begun before the one of the last round was over");
    }
    round_ = round;
    runner(round).Begin();
    // The hosts that do not train wait for nothing of their own.
    for (int host = schedule_->nodes(); host < schedule_->hosts(); ++host)
      runner(round).Ready(host);
  }
  runner(round).Ready(node);
}

void PlannedExchange::OnFlow(const sim::FlowResult& result) {
  recorder_.Record(MakeFlowRecord(result, schedule_->IdOf(result.flow.from),
                                  schedule_->IdOf(result.flow.to), std::string(schedule_->name()),
                                  round_));
}

}  // namespace spes::trainer
