// A run, typed: everything that a scenario file can say. One docstring per field is in describe.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/network.h"
#include "sim/topology.h"
#include "trainer/cost/cost_model.h"
#include "trainer/data/config.h"
#include "trainer/model/config.h"
#include "trainer/optim/config.h"
#include "trainer/sync/allocation.h"
#include "trainer/sync/merge.h"

namespace spes::scenarios {

struct TrainingSection {
  std::int64_t steps = 150;          // of every node
  std::int64_t sequences = 8;        // per node and step
  std::int64_t micro_sequences = 0;  // of one microbatch; 0: all at once
  std::int64_t context = 128;        // tokens of a sequence
  trainer::OptimizerConfig optimizer;
  std::string start_from;  // a saved world (safetensors) instead of the initial one
};

// Nodes that are alike.
struct NodeGroup {
  int count = 1;
  std::string site;  // empty: the network's first
  double speed = 1;  // relative to nodes.compute
  sim::AccessLink link;
};

struct NodesSection {
  int count = 0;                  // 0: the sum of the groups; otherwise it must equal it
  std::vector<NodeGroup> groups;  // none: `count` nodes with the default link at the first site
  trainer::CostConfig compute;
};

enum class AggregationWeight { kEqual, kTokens };

struct SyncSection {
  int every = 25;  // H, local steps per round
  trainer::AllocationKind allocation = trainer::AllocationKind::kContiguous;
  AggregationWeight weight = AggregationWeight::kEqual;
  trainer::MergeConfig merge;
  int quorum = 0;                     // uploads that end a round; 0: all nodes
  std::optional<sim::Time> deadline;  // a round ends then with what has arrived
};

enum class Fidelity { kIdeal, kPacket };

struct SiteSpec {
  std::string name;
};

// Sites and the paths between them: inline, or read from `matrix`, a CSV with the columns a, b,
// rtt_ms, gbps (each pair once, symmetric).
struct NetworkSection {
  Fidelity fidelity = Fidelity::kPacket;
  std::string matrix;              // path of the CSV; empty: a single site
  std::vector<std::string> sites;  // those of the matrix that are used, in order; empty: all
  std::string coordinator_site;    // empty: the first
  sim::AccessLink coordinator_link{.down_bps = 10e9, .up_bps = 10e9};
  double path_loss = 0;
  double path_queue_bdp = 1;
  sim::TcpConfig tcp;
};

struct OutputSection {
  std::string log;               // HDF5; empty: results/runs/<scenario name>.h5
  std::string world;             // safetensors; empty: beside the log
  std::int32_t world_every = 0;  // rounds between saved worlds; 0: the end only
  std::int32_t eval_every = 1;   // rounds between evaluations; 0: the start and the end only
};

struct Scenario {
  std::string name;  // of the file, without folder and ending
  std::uint64_t seed = 1;
  trainer::ModelConfig model;
  trainer::DataConfig data;
  TrainingSection training;
  NodesSection nodes;
  SyncSection sync;
  NetworkSection network;
  OutputSection output;
  int workers = 0;  // threads that train; 0: one per core
};

}  // namespace spes::scenarios
