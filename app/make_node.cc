#include "app/make_node.h"

#include <utility>

#include "scenarios/sync_builder.h"
#include "trainer/devices.h"
#include "trainer/wait_node.h"

namespace spes::app {

std::unique_ptr<trainer::Node> MakeNode(const scenarios::Scenario& scenario,
                                        const trainer::World& world,
                                        const trainer::Dataset& dataset,
                                        const trainer::Allocation& allocation, int node,
                                        std::shared_ptr<std::atomic<std::int64_t>> steps_done,
                                        std::shared_ptr<trainer::PublishedTensors> published,
                                        std::function<double(std::int64_t step)> wait_s) {
  if (scenario.nodes.only_wait) {
    return trainer::MakeWaitNode(world, allocation.blocks(node),
                                 scenario.training.sequences * scenario.training.context,
                                 std::move(wait_s));
  }
  trainer::ModelNodeConfig config;
  config.model = scenario.model;
  config.optimizer = scenarios::BuildOptimizer(scenario);
  config.sequences = scenario.training.sequences;
  config.micro_sequences = scenario.training.micro_sequences;
  config.context = scenario.training.context;
  config.devices = trainer::DevicesOfNode(scenario.devices, scenario.nodes.devices_per_node, node);
  config.compute = scenario.training.compute_dtype;
  config.published = std::move(published);
  config.candidates = scenario.training.candidates;
  config.routing_bias = scenario.training.routing_bias;
  config.routing_bias_length = scenario.training.routing_bias_length;
  config.gradients_only = scenario.sync.method == scenarios::SyncMethod::kDataParallel;
  config.steps_done = std::move(steps_done);
  return trainer::MakeModelNode(
      config, world, allocation.blocks(node),
      dataset.Source(node, allocation.nodes(), scenario.training.context, scenario.seed));
}

}  // namespace spes::app
