// A coordinator and its peers over a scripted runtime.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/protocol/fake_node.h"
#include "tests/trainer/protocol/memory_recorder.h"
#include "tests/trainer/protocol/scripted_runtime.h"
#include "trainer/protocol/coordinator.h"
#include "trainer/protocol/peer.h"

namespace spes::trainer {

// Every element of an offered block becomes x, and its checksum fits.
inline void Refill(OfferedBlock& block, const BlockTable& table, double x) {
  auto values = std::make_shared<Buffer>(table.Allocate(block.id));
  for (const BlockPart& part : table[block.id].parts) {
    std::fill_n(values->as<double>().begin() + part.offset, part.elements, x);
  }
  block.data = values;
  block.checksum = BlockChecksum(table[block.id], table.dtype(), *values);
}

// N nodes, one layer, two experts each unless said otherwise; node n adds (n + 1) per step to
// whatever it trains.
class Cluster {
 public:
  // `peer`: what all peers are configured with, but for who they are.
  explicit Cluster(int nodes, CoordinatorConfig config = {}, int experts_per_node = 2,
                   const PeerConfig& peer = {})
      : Cluster(nodes, std::move(config), MakeTinyTable(1, experts_per_node * nodes), peer) {}

  Cluster(int nodes, CoordinatorConfig config, std::shared_ptr<const BlockTable> blocks,
          const PeerConfig& peer = {})
      : table(std::move(blocks)),
        allocation(MakeAllocation(config.allocation, *table, nodes, config.capacities)) {
    if (config.schedule.total_steps == 0) config.schedule.total_steps = 6;
    if (config.schedule.every == 0) config.schedule.every = 3;
    config.scenario_hash = "same";
    const World world = MakeTinyWorld(table);
    coordinator = std::make_unique<Coordinator>(
        config, allocation, world, runtime.endpoint(kCoordinator), recorder,
        [this](const PublishedRound& p) { published.push_back(p); });
    runtime.Connect(kCoordinator,
                    [this](NodeId from, const Message& m) { coordinator->OnMessage(from, m); });
    for (NodeId n = 0; n < nodes; ++n) {
      this->nodes.push_back(std::make_unique<FakeNode>(world, allocation.blocks(n), n + 1));
      PeerConfig own = peer;
      own.node = n;
      own.scenario_hash = "same";
      own.world_hash = WorldHash(world);
      own.step_time = [](std::int64_t) { return std::chrono::seconds(1); };
      peers.push_back(std::make_unique<Peer>(std::move(own), *this->nodes.back(), world,
                                             runtime.endpoint(n), stop));
      runtime.Connect(n, [this, n](NodeId, const Message& m) {
        peers[static_cast<std::size_t>(n)]->OnMessage(m);
      });
    }
  }

  void Start() {
    for (auto& peer : peers) peer->Start();
  }
  void Run() {
    Start();
    runtime.loop.Run();
  }
  std::string Hash() const { return WorldHash(coordinator->world()); }
  double WorldValue(BlockId id) const {
    return coordinator->world().blocks[static_cast<std::size_t>(id)].data->as<double>()[0];
  }

  std::shared_ptr<const BlockTable> table;
  Allocation allocation;
  ScriptedRuntime runtime;
  MemoryRecorder recorder;
  std::atomic<bool> stop{false};
  std::vector<PublishedRound> published;
  std::unique_ptr<Coordinator> coordinator;
  std::vector<std::unique_ptr<FakeNode>> nodes;
  std::vector<std::unique_ptr<Peer>> peers;
};

}  // namespace spes::trainer
