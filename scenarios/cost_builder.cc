#include "scenarios/cost_builder.h"

#include "scenarios/topology_builder.h"
#include "trainer/model/config.h"

namespace spes::scenarios {

trainer::CostModel BuildCostModel(const Scenario& scenario) {
  // An owner makes weight gradients of its own experts only, one in `nodes`.
  const double flops = trainer::TrainingFlopsPerToken(scenario.model, scenario.training.context,
                                                      1.0 / NodeCount(scenario)) *
                       static_cast<double>(scenario.training.sequences * scenario.training.context);
  return {scenario.nodes.compute, NodeSpeeds(scenario), flops, scenario.seed};
}

}  // namespace spes::scenarios
