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
#include "scenarios/faults.h"
#include "scenarios/sync_builder.h"
#include "scenarios/topology_builder.h"
#include "trainer/model_node.h"

namespace spes::app {

Simulation::Simulation(const scenarios::Scenario& scenario, const trainer::World& world,
                       const trainer::Dataset& dataset, trainer::ComputePool& pool,
                       analysis::Recorder& recorder, const std::atomic<bool>& stop,
                       trainer::Coordinator::OnPublished on_published, Durability durability)
    : stop_(stop),
      recorder_(recorder),
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
  // A run that goes on counts its time from 0 again; what goes wrong is of the whole run.
  const sim::Time begins =
      durability.resume ? sim::FromSeconds(durability.resume->now_s) : sim::Time{0};
  SetHeldOutTrial(scenario, dataset, config.trust);
  config.run = durability.run;
  config.scenario_hash = durability.scenario_hash;
  if (durability.resume) *steps_done_ = durability.resume->step * allocation_.nodes();
  if (durability.journal) {
    config.journal = [journal = std::move(durability.journal),
                      begins](const trainer::CoordinatorState& state) {
      trainer::CoordinatorState of_run = state;
      of_run.now_s += sim::ToSeconds(begins);
      journal(of_run);
    };
  }

  trainer::MachineParts parts{
      config,
      allocation_,
      world,
      [&scenario, cost, world_hash = trainer::WorldHash(world),
       scenario_hash = config.scenario_hash](trainer::NodeId node) {
        trainer::PeerConfig peer = scenarios::BuildPeerConfig(scenario, node);
        peer.scenario_hash = scenario_hash;
        peer.world_hash = world_hash;
        peer.step_time = [cost, node](std::int64_t step) { return cost->StepTime(node, step); };
        return peer;
      },
      [this, &scenario, &world, &dataset,
       on_devices = trainer::MakePublishedTensors()](trainer::NodeId node) {
        return MakeNode(scenario, world, dataset, allocation_, node, steps_done_, on_devices);
      },
      [this, on_published = std::move(on_published)](const trainer::PublishedRound& published) {
        published_ = loop_.Now();
        network_->Sample();
        on_published(published);
      }};
  if (!durability.nodes.folder.empty()) {
    // What was trained after the round that the run goes on from is not trained yet, in its time.
    if (durability.resume) durability.nodes.newest = durability.resume->round;
    parts.store = [kept = durability.nodes](trainer::NodeId node) {
      return OpenNodeStore(kept, node);
    };
  }
  parts.resume = std::move(durability.resume);
  if (scenarios::HasFaults(scenario)) give_up_after_ = scenario.faults.give_up_after;
  machines_ = std::make_unique<trainer::Machines>(
      std::move(parts),
      trainer::FaultStream(scenarios::BuildFaults(scenario), allocation_.nodes(), begins),
      trainer::FaultyRuntime::Carrier{
          [this](trainer::NodeId id) -> trainer::Runtime& { return runtime_.endpoint(id); },
          [this](trainer::NodeId id, trainer::FaultyRuntime::OnMessage f) {
            trainer::SimRuntime::OnLost lost;
            if (id == trainer::kCoordinator) {
              lost = [this](trainer::NodeId node, const std::string& reason) {
                machines_->runtime().OnBroken(node, reason);
              };
            }
            runtime_.Connect(id, std::move(f), std::move(lost));
          },
          [this](trainer::NodeId node) { runtime_.Cut(node); }},
      trainer::FaultyRuntime::Options{.detection = scenario.faults.detection}, recorder_, stop);
  machines_->Start();  // here, since nodes may find that there is too little to train on
}

Simulation::~Simulation() = default;

void Simulation::Run(const std::function<void()>& tick) {
  runtime_.OnIdle(tick);
  while (!stop_ && !machines_->finished()) {
    const bool underway = loop_.Step();
    if (stop_) break;
    if (!underway) Fail("no peer and no message is underway");
    if (machines_->deserted()) Fail("all nodes have crashed for good");
    if (give_up_after_ && loop_.Now() - published_ > *give_up_after_) {
      Fail(fmt::format("no round has ended for {} (faults.give_up_after)",
                       sim::FormatDuration(*give_up_after_)));
    }
    tick();
  }
  network_->Sample();
}

void Simulation::Fail(const std::string& why) const {
  throw std::runtime_error(
      fmt::format("the run stands still after round {} of {}: {}; waited for: {}",
                  machines_->round(), machines_->total_rounds(), why, machines_->WaitedFor()));
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
