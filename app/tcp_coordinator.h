// The coordinator of a run on real machines.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "analysis/recorder.h"
#include "app/engine.h"
#include "scenarios/scenario.h"
#include "scenarios/scenario_hash.h"
#include "trainer/data/dataset.h"
#include "trainer/model_node.h"
#include "trainer/protocol/peer.h"
#include "trainer/runtime/compute_pool.h"
#include "trainer/runtime/local_hub.h"
#include "trainer/runtime/tcp/certificate_watch.h"
#include "trainer/runtime/tcp/tcp_runtime.h"

namespace spes::app {

struct ServeSetup {
  std::string address;      // HOST:PORT; port 0: any
  std::vector<int> trains;  // nodes inside this process
  scenarios::ScenarioIdentity identity;
  std::string token = {};  // that lets nodes in; empty: that of transport.keys, if any
};

// That the nodes which this process trains are some of the run's, each named once. Throws
// std::invalid_argument, one line.
void CheckTrained(const std::vector<int>& trains, int nodes);

class TcpCoordinator final : public Engine {
 public:
  // References as for Simulation. Throws std::invalid_argument, one line, when the address or the
  // keys cannot be used, or where `durability` does not fit.
  TcpCoordinator(const scenarios::Scenario& scenario, const ServeSetup& setup,
                 const trainer::World& world, const trainer::Dataset& dataset,
                 trainer::ComputePool& pool, analysis::Recorder& recorder,
                 const std::atomic<bool>& stop, trainer::Coordinator::OnPublished on_published,
                 Durability durability);
  ~TcpCoordinator() override;

  // When it is told to stop while a round is being reduced, it publishes that round first.
  void Run(const std::function<void()>& tick) override;

  const trainer::Coordinator* coordinator() const override { return coordinator_.get(); }
  const trainer::Allocation& allocation() const override { return allocation_; }
  double NowSeconds() const override { return sim::ToSeconds(server_->Now()); }
  // Of the rounds that are done.
  std::int64_t steps_done() const override { return coordinator_->step() * allocation_.nodes(); }
  std::optional<trainer::TcpNodeStatus> ConnectionOf(int node) const override;
  void Work(const std::function<void()>& work) override { server_->Work(work); }
  std::optional<std::int64_t> certificate_expires_s() const override;
  double waited_for_work_s() const override { return 0; }

  // HOST:PORT where it listens.
  std::string address() const { return server_->address(); }

 private:
  void AddNode(const scenarios::Scenario& scenario, const ServeSetup& setup,
               const trainer::World& world, const trainer::Dataset& dataset, int node,
               const NodeStates& states);
  std::unique_ptr<trainer::CertificateWatch> WatchCertificates(analysis::Recorder& recorder);
  void Serve(const std::function<void()>& tick);
  bool AllKnow() const;

  const std::atomic<bool>& stop_;
  std::vector<int> trains_;
  trainer::Allocation allocation_;
  bool was_over_;       // when this process began
  sim::Time heard_{0};  // of a node, last
  trainer::TcpSecurity security_;
  std::unique_ptr<trainer::CertificateWatch> certificates_;
  std::unique_ptr<trainer::TcpServer> server_;
  trainer::LocalHub hub_;
  std::unique_ptr<trainer::Coordinator> coordinator_;
  const std::shared_ptr<trainer::PublishedTensors> on_devices_ = trainer::MakePublishedTensors();
  std::vector<std::unique_ptr<trainer::PeerStore>> stores_;
  std::vector<std::unique_ptr<trainer::Node>> nodes_;
  std::vector<std::unique_ptr<trainer::Peer>> peers_;
};

}  // namespace spes::app
