#include "app/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "app/durable_run.h"
#include "app/held_out_trial.h"
#include "app/make_network.h"
#include "app/make_node.h"
#include "scenarios/cost_builder.h"
#include "scenarios/exchange.h"
#include "scenarios/sync_builder.h"
#include "scenarios/topology_builder.h"
#include "trainer/model_node.h"

namespace spes::app {

Simulation::Simulation(const scenarios::Scenario& scenario, const trainer::World& world,
                       const trainer::Dataset& dataset, trainer::ComputePool& pool,
                       analysis::Recorder& recorder, const std::atomic<bool>& stop,
                       trainer::Coordinator::OnPublished on_published, Durability durability)
    : stop_(stop),
      allocation_(scenarios::BuildAllocation(scenario, *world.table)),
      network_(std::make_unique<trainer::LinkSampler>(
          MakeNetwork(scenario, scenarios::BuildTopology(scenario)), recorder,
          scenario.output.links_every)),
      loop_(network_.get()),
      runtime_(loop_, *network_, pool, recorder, allocation_.nodes(),
               scenario.network.tcp.streams) {
  const auto cost = std::make_shared<const trainer::CostModel>(scenarios::BuildCostModel(scenario));
  trainer::CoordinatorConfig config = scenarios::BuildCoordinatorConfig(scenario, *world.table);
  if (scenario.network.exchange.pattern != sim::ExchangePattern::kCoordinator) {
    const auto schedule = std::make_shared<const trainer::ExchangeSchedule>(
        *world.table, allocation_,
        scenarios::BuildExchange(scenario, scenarios::BuildTopology(scenario)));
    runtime_.UseExchange(schedule, scenario.network.exchange.sends);
    config.charge = [schedule, table = world.table](trainer::NodeId node,
                                                    const trainer::Message& m) {
      return schedule->Charge(node, m, *table);
    };
  }
  SetHeldOutTrial(scenario, dataset, config.trust);
  const std::string world_hash = trainer::WorldHash(world);
  config.run = durability.run;
  config.journal = std::move(durability.journal);
  const auto on_devices = trainer::MakePublishedTensors();

  coordinator_ = std::make_unique<trainer::Coordinator>(
      config, allocation_, world, runtime_.endpoint(trainer::kCoordinator), recorder,
      [this, on_published = std::move(on_published)](const trainer::PublishedRound& published) {
        network_->Sample();
        on_published(published);
      },
      std::move(durability.resume));
  runtime_.Connect(
      trainer::kCoordinator,
      [this](trainer::NodeId from, const trainer::Message& m) { coordinator_->OnMessage(from, m); },
      [this](trainer::NodeId peer, const std::string& reason) {
        coordinator_->OnLost(peer, reason);
      });
  for (trainer::NodeId node = 0; node < allocation_.nodes(); ++node) {
    nodes_.push_back(
        MakeNode(scenario, world, dataset, allocation_, node, steps_done_, on_devices));
    trainer::PeerConfig peer = scenarios::BuildPeerConfig(scenario, node);
    peer.scenario_hash = config.scenario_hash;
    peer.world_hash = world_hash;
    if (!durability.folder.empty()) {
      stores_.push_back(OpenNodeStore(durability.folder, node));
      peer.store = stores_.back().get();
    }
    peer.step_time = [cost, node](std::int64_t step) { return cost->StepTime(node, step); };
    peers_.push_back(std::make_unique<trainer::Peer>(std::move(peer), *nodes_.back(), world,
                                                     runtime_.endpoint(node), stop_));
    runtime_.Connect(node, [peer = peers_.back().get()](
                               trainer::NodeId, const trainer::Message& m) { peer->OnMessage(m); });
  }
}

Simulation::~Simulation() = default;

void Simulation::Run(const std::function<void()>& tick) {
  runtime_.OnIdle(tick);
  for (const auto& peer : peers_) peer->Start();
  while (!stop_ && !coordinator_->finished() && loop_.Step()) tick();
  network_->Sample();
  if (stop_ || coordinator_->finished()) return;
  throw std::runtime_error(
      fmt::format("the run stands still after round {} of {}: no peer and no message is underway",
                  coordinator_->round(), coordinator_->total_rounds()));
}

void Calibrate(scenarios::Scenario& scenario, const trainer::World& world,
               const trainer::Dataset& dataset) {
  if (scenario.nodes.compute.kind != trainer::ComputeCost::kMeasured) return;
  const trainer::Allocation allocation = scenarios::BuildAllocation(scenario, *world.table);
  const std::atomic<bool> stop{false};
  const auto node = MakeNode(scenario, world, dataset, allocation, 0, nullptr, nullptr);
  const trainer::TrainResult result = node->TrainSteps(1, 4, stop);
  double shortest = result.steps[1].wall_s;
  for (std::size_t i = 2; i < result.steps.size(); ++i) {
    shortest = std::min(shortest, result.steps[i].wall_s);
  }
  scenario.nodes.compute.step_time = sim::FromSeconds(shortest);
}

}  // namespace spes::app
