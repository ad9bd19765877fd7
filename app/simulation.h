// All parts of a simulated run, put together.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "analysis/recorder.h"
#include "app/engine.h"
#include "app/steps_once.h"
#include "scenarios/scenario.h"
#include "sim/event_loop.h"
#include "trainer/data/dataset.h"
#include "trainer/protocol/coordinator.h"
#include "trainer/runtime/link_sampler.h"
#include "trainer/runtime/machines.h"
#include "trainer/runtime/sim_runtime.h"

namespace spes::app {

// N nodes, their peers, the coordinator, the network between them, and what goes wrong.
class Simulation final : public Engine {
 public:
  // `world`: the model to start from. All references must outlive the simulation, and the pool must
  // have no job of it left when it ends. Throws std::invalid_argument where
  // `durability` does not fit.
  Simulation(const scenarios::Scenario& scenario, const trainer::World& world,
             const trainer::Dataset& dataset, trainer::ComputePool& pool,
             analysis::Recorder& recorder, const std::atomic<bool>& stop,
             trainer::Coordinator::OnPublished on_published, Durability durability);
  ~Simulation() override;

  // Also throws where no round ends for as long as `faults.give_up_after`.
  void Run(const std::function<void()>& tick) override;

  const trainer::Coordinator* coordinator() const override { return machines_->coordinator(); }
  const trainer::Allocation& allocation() const override { return allocation_; }
  // From the beginning of this process's part, where a run is resumed.
  double NowSeconds() const override { return sim::ToSeconds(loop_.Now()); }
  // Those of the round at hand included.
  std::int64_t steps_done() const override { return *steps_done_; }
  std::optional<trainer::TcpNodeStatus> ConnectionOf(int) const override { return std::nullopt; }
  double waited_for_work_s() const override { return runtime_.waited_s(); }

 private:
  void Fail(const std::string& why) const;

  const std::atomic<bool>& stop_;
  StepsOnce recorder_;
  trainer::Allocation allocation_;
  std::unique_ptr<trainer::LinkSampler> network_;
  sim::EventLoop loop_;
  trainer::SimRuntime runtime_;
  std::shared_ptr<std::atomic<std::int64_t>> steps_done_ =
      std::make_shared<std::atomic<std::int64_t>>(0);
  std::optional<sim::Time> give_up_after_;  // nothing: not while nothing goes wrong
  sim::Time published_{0};                  // when the last round was
  std::unique_ptr<trainer::Machines> machines_;
};

// The scenario with a measured step time filled in, when it asks for one: the shortest of three
// steps of node 0 after one to warm up, with nothing else running.
void Calibrate(scenarios::Scenario& scenario, const trainer::World& world,
               const trainer::Dataset& dataset);

}  // namespace spes::app
