// All parts of a simulated run, put together.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "analysis/recorder.h"
#include "app/engine.h"
#include "scenarios/scenario.h"
#include "sim/event_loop.h"
#include "trainer/data/dataset.h"
#include "trainer/protocol/coordinator.h"
#include "trainer/protocol/peer.h"
#include "trainer/runtime/link_sampler.h"
#include "trainer/runtime/sim_runtime.h"

namespace spes::app {

// N nodes, their peers, the coordinator and the network between them.
class Simulation final : public Engine {
 public:
  // `world`: the model to start from. `recorder`, `pool` and `stop` must outlive the simulation,
  // and the pool must have no job of it left when it ends. Throws std::invalid_argument where
  // `durability` does not fit.
  Simulation(const scenarios::Scenario& scenario, const trainer::World& world,
             const trainer::Dataset& dataset, trainer::ComputePool& pool,
             analysis::Recorder& recorder, const std::atomic<bool>& stop,
             trainer::Coordinator::OnPublished on_published, Durability durability);
  ~Simulation() override;

  void Run(const std::function<void()>& tick) override;

  const trainer::Coordinator& coordinator() const override { return *coordinator_; }
  const trainer::Allocation& allocation() const override { return allocation_; }
  // From the beginning of this process's part, where a run is resumed.
  double NowSeconds() const override { return sim::ToSeconds(loop_.Now()); }
  // Those of the round at hand included.
  std::int64_t steps_done() const override { return *steps_done_; }
  std::optional<trainer::TcpNodeStatus> ConnectionOf(int) const override { return std::nullopt; }
  double waited_for_work_s() const override { return runtime_.waited_s(); }

 private:
  const std::atomic<bool>& stop_;
  trainer::Allocation allocation_;
  std::unique_ptr<trainer::LinkSampler> network_;
  sim::EventLoop loop_;
  trainer::SimRuntime runtime_;
  std::unique_ptr<trainer::Coordinator> coordinator_;
  std::shared_ptr<std::atomic<std::int64_t>> steps_done_ =
      std::make_shared<std::atomic<std::int64_t>>(0);
  std::vector<std::unique_ptr<trainer::PeerStore>> stores_;
  std::vector<std::unique_ptr<trainer::Node>> nodes_;
  std::vector<std::unique_ptr<trainer::Peer>> peers_;
};

// The scenario with a measured step time filled in, when it asks for one: the shortest of three
// steps of node 0 after one to warm up, with nothing else running.
void Calibrate(scenarios::Scenario& scenario, const trainer::World& world,
               const trainer::Dataset& dataset);

}  // namespace spes::app
