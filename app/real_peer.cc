#include "app/real_peer.h"

#include <memory>
#include <utility>

#include "app/random_number.h"
#include "scenarios/cost_builder.h"
#include "scenarios/sync_builder.h"

namespace spes::app {

trainer::PeerConfig RealPeerConfig(const scenarios::Scenario& scenario, int node,
                                   const trainer::World& world, std::string hash,
                                   trainer::PeerStore* store) {
  trainer::PeerConfig peer = scenarios::BuildPeerConfig(scenario, node);
  peer.incarnation = RandomNumber();
  peer.scenario_hash = std::move(hash);
  peer.world_hash = trainer::WorldHash(world);
  peer.decodes = true;
  peer.store = store;
  peer.coding_time = {};  // it is in the time that things take
  return peer;
}

std::function<double(std::int64_t step)> WaitSeconds(const scenarios::Scenario& scenario,
                                                     int node) {
  if (!scenario.nodes.only_wait) return {};
  const auto cost = std::make_shared<const trainer::CostModel>(scenarios::BuildCostModel(scenario));
  return [cost, node](std::int64_t step) { return sim::ToSeconds(cost->StepTime(node, step)); };
}

}  // namespace spes::app
