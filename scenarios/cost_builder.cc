#include "scenarios/cost_builder.h"

#include <utility>
#include <vector>

#include "scenarios/sync_builder.h"
#include "scenarios/topology_builder.h"
#include "trainer/model/config.h"

namespace spes::scenarios {

trainer::CostModel BuildCostModel(const Scenario& scenario) {
  // A node makes weight gradients of the experts that it trains only.
  const auto flops = [&scenario](double share) {
    return trainer::TrainingFlopsPerToken(scenario.model, scenario.training.context, share) *
           static_cast<double>(scenario.training.sequences * scenario.training.context);
  };
  std::vector<double> speeds = NodeSpeeds(scenario);
  if (scenario.nodes.compute.kind == trainer::ComputeCost::kFlops && scenario.model.experts > 0) {
    // Whoever trains fewer experts than all is faster than the step of all of them.
    const auto table = trainer::MakeBlockTable(scenario.model);
    const trainer::Allocation allocation = BuildAllocation(scenario, *table);
    for (int node = 0; node < allocation.nodes(); ++node) {
      std::int64_t own = 0;
      for (const trainer::BlockId id : allocation.blocks(node)) {
        own += (*table)[id].kind == trainer::BlockKind::kExpert;
      }
      const double share = static_cast<double>(own) /
                           static_cast<double>(scenario.model.experts * scenario.model.layers);
      speeds[static_cast<std::size_t>(node)] *= flops(1) / flops(share);
    }
  }
  return {scenario.nodes.compute, std::move(speeds), flops(1), scenario.seed};
}

sim::Time EvaluationTime(const Scenario& scenario, std::int64_t tokens) {
  const trainer::CostConfig& cost = scenario.nodes.compute;
  const std::int64_t context = scenario.training.context;
  const auto step_tokens = static_cast<double>(scenario.training.sequences * context);
  const double token_s = cost.kind == trainer::ComputeCost::kFlops
                             ? trainer::TrainingFlopsPerToken(scenario.model, context) /
                                   (cost.device_flops * cost.efficiency)
                             : sim::ToSeconds(cost.step_time) / step_tokens;
  return sim::FromSeconds(token_s * static_cast<double>(tokens) / 3);
}

}  // namespace spes::scenarios
