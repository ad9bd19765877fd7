// A run's coordinator and peers as processes, and the faults that befall them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/recorder.h"
#include "trainer/checkpoint/memory_peer_store.h"
#include "trainer/protocol/coordinator.h"
#include "trainer/protocol/peer.h"
#include "trainer/runtime/fault_plan.h"
#include "trainer/runtime/faulty_runtime.h"
#include "trainer/runtime/slow_spells.h"

namespace spes::trainer {

// What each process is begun with, the first time and again.
struct MachineParts {
  CoordinatorConfig coordinator;
  Allocation allocation;
  World world;
  std::function<PeerConfig(NodeId)> peer;  // without incarnation and store
  std::function<std::unique_ptr<Node>(NodeId)> node;
  Coordinator::OnPublished on_published;  // called once for each round, whoever publishes it
  // Where a node's states go. Empty: to memory where a fault may end a process, otherwise nowhere.
  // The coordinator's go to `coordinator.journal` besides.
  std::function<std::unique_ptr<PeerStore>(NodeId)> store = {};
  std::optional<CoordinatorState> resume = {};  // what the run goes on from
  bool durable = false;  // states are written down although no fault ends a process
};

class Machines {
 public:
  // Begins the coordinator. `recorder` and `stop` must outlive the machines. Throws as Coordinator
  // does.
  Machines(MachineParts parts, FaultStream faults, FaultyRuntime::Carrier carrier,
           FaultyRuntime::Options options, analysis::Recorder& recorder,
           const std::atomic<bool>& stop);
  ~Machines();

  // Begins the nodes; from now on faults come.
  void Start();

  // The run is over; see Coordinator::finished. Not while the coordinator is down.
  bool finished() const { return coordinator_ && coordinator_->finished(); }
  std::int32_t round() const { return published_; }  // the last that was published
  std::int32_t total_rounds() const { return total_rounds_; }

  FaultyRuntime& runtime() { return runtime_; }
  // Null while the process is down.
  const Coordinator* coordinator() const { return coordinator_.get(); }
  const Peer* peer(NodeId node) const { return nodes_[static_cast<std::size_t>(node)].peer.get(); }
  const Node* node(NodeId node) const { return nodes_[static_cast<std::size_t>(node)].node.get(); }
  // Nobody is left who could end the round at hand: all nodes have ended for good.
  bool deserted() const;
  // Whom the round at hand waits for and in what state they are: "node 3 (missing), node 5 (down)".
  std::string WaitedFor() const;
  // How often a process has begun.
  int lives(NodeId id) const { return lives_[static_cast<std::size_t>(id + 1)]; }

  // Applies a fault now, whatever the stream says; not one of kSlow.
  void Strike(const Fault& fault);

  // For whoever looks on: a state is durable; a process begins.
  std::function<void(const CoordinatorState&)> on_journalled;
  std::function<void(NodeId)> on_begin;

 private:
  class Store;
  struct Machine {
    std::unique_ptr<PeerStore> disk;
    std::unique_ptr<PeerStore> store;  // where the process writes
    bool gone = false;                 // for good
    std::unique_ptr<Node> node;
    std::unique_ptr<Peer> peer;
  };
  Machine& machine(NodeId node) { return nodes_[static_cast<std::size_t>(node)]; }

  void KeepStates();
  void AwaitFaults();
  void Begin(NodeId id);
  void BeginCoordinator();
  void BeginNode(NodeId node);
  void End(NodeId id);
  void OnFullDisk(NodeId id);
  void Hinder(NodeId id, bool hindered, const std::string& why = {});
  void Event(NodeId id, std::string kind, std::string detail);

  MachineParts parts_;
  SlowSpells slow_;
  FaultStream faults_;
  std::optional<Fault> next_;
  Runtime& clock_;
  FaultyRuntime runtime_;
  analysis::Recorder& recorder_;
  const std::atomic<bool>& stop_;
  bool durable_ = false;  // some process may end
  std::shared_ptr<const CoordinatorState> journal_;
  std::unique_ptr<Coordinator> coordinator_;
  std::vector<Machine> nodes_;
  std::vector<int> lives_;  // the coordinator's first
  std::vector<int> down_;   // likewise: reasons for which it cannot be there
  std::set<NodeId> waits_for_disk_;
  std::int32_t published_ = -1;
  std::int32_t total_rounds_ = 0;
};

}  // namespace spes::trainer
