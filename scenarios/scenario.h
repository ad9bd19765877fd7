// A run, typed: everything that a scenario file can say. Keys, docstrings, units and limits of the
// fields are in describe.cc.
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
  std::string site;  // empty: the coordinator's
  double speed = 1;  // relative to nodes.compute
  sim::AccessLink link;
};

struct NodesSection {
  int count = 0;                  // 0: the sum of the groups; otherwise it must equal it
  std::vector<NodeGroup> groups;  // none: `count` nodes with the default link at its site
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

// The path between two sites, or within one (a == b), as sim::SitePath.
struct NetworkPath {
  std::string a, b;
  sim::Time rtt{0};
  double bps = 1e9;
  double loss = 0;
  double queue_bdp = 1;
};

// Sites exist by being named: in `paths`, in the matrix, by a group or by the coordinator. Every
// pair of them needs a path, given inline or by `matrix`; within a site none is needed (no delay,
// 100 Gbps). The reader turns the matrix into paths between the sites where somebody stands, so a
// scenario as read has no matrix any more.
struct NetworkSection {
  Fidelity fidelity = Fidelity::kPacket;
  std::vector<NetworkPath> paths;
  std::string matrix;            // a CSV with the columns a, b, rtt_ms, gbps
  double path_loss = 0;          // of the matrix's paths
  double path_queue_bdp = 1;     // of the matrix's paths
  std::string coordinator_site;  // empty: the first of the network
  sim::AccessLink coordinator_link{.down_bps = 10e9, .up_bps = 10e9};
  sim::TcpConfig tcp;
};

struct OutputSection {
  std::string log;               // HDF5; empty: results/runs/<scenario name>.h5
  std::string world;             // safetensors; empty: beside the log
  std::int32_t world_every = 0;  // rounds between saved worlds; 0: the end only
  std::int32_t eval_every = 1;   // rounds between evaluations; 0: the start and the end only
};

struct Scenario {
  std::string name;  // empty: the file's, without folder and ending
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
