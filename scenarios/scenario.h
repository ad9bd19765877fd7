// A run, typed: everything that a scenario file can say. Keys, docstrings, units and limits of the
// fields are in describe.cc and describe_network.cc.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/conditions.h"
#include "sim/topology.h"
#include "sim/traffic/patterns.h"
#include "trainer/cost/cost_model.h"
#include "trainer/data/config.h"
#include "trainer/model/config.h"
#include "trainer/optim/config.h"
#include "trainer/protocol/coordinator.h"
#include "trainer/protocol/poison.h"
#include "trainer/runtime/fault_plan.h"
#include "trainer/sync/allocation.h"
#include "trainer/sync/codec.h"
#include "trainer/sync/merge.h"
#include "trainer/sync/outer.h"
#include "trainer/sync/reduction.h"

namespace spes::scenarios {

struct TrainingSection {
  std::int64_t steps = 150;          // of every node
  std::int64_t sequences = 8;        // per node and step
  std::int64_t micro_sequences = 0;  // of one microbatch; 0: all at once
  std::int64_t context = 128;        // tokens of a sequence
  trainer::ComputeType compute_dtype = trainer::ComputeType::kModel;
  trainer::OptimizerConfig optimizer;
  int candidates = 1;                    // see trainer/model_node.h
  double routing_bias = 0;               // see trainer/model_node.h
  std::int64_t routing_bias_length = 0;  // steps
  std::string start_from;                // a saved world (safetensors) instead of the initial one
};

// An access link whose traces are files (the base's own are null), see capacity_trace.h.
struct LinkSection : sim::AccessLink {
  std::string down_trace_file = {};  // empty: the constant rate
  std::string up_trace_file = {};
};

// Nodes that are alike.
struct NodeGroup {
  int count = 1;
  std::string site;               // empty: the coordinator's
  double speed = 1;               // relative to nodes.compute
  std::int64_t memory_bytes = 0;  // of each; 0: not known
  trainer::PoisonConfig poison;   // its seed is the scenario's
  LinkSection link;
};

struct NodesSection {
  int count = 0;                  // 0: the sum of the groups; otherwise it must equal it
  std::vector<NodeGroup> groups;  // none: `count` nodes with the default link at its site
  trainer::CostConfig compute;
  double coding_bytes_per_s = 1e9;  // values that are written down or read back as codes
  bool only_wait = false;           // they do not train, see trainer/wait_node.h
  int devices_per_node = 1;         // see trainer/devices.h
};

enum class SyncMethod {
  kLocal,         // nodes train steps of their own between rounds
  kDataParallel,  // every step is a round: gradients are averaged
};

// How blocks of one kind are reduced.
struct ReductionSection {
  trainer::ReductionRule rule;
  trainer::OuterConfig outer;
};

// Nodes as text: "3", "0-3,7".
struct FrozenSection {
  std::string nodes;
  std::vector<std::string> parts;
};

struct RotationSection {
  int every = 0;  // rounds; 0: never
  trainer::RotatedMoments moments = trainer::RotatedMoments::kHandedOver;
};

// What is done against members that lie or are broken; see trainer/protocol/trust.h.
struct TrustSection {
  double norm_bound = 0;
  int window = 8, strikes = 3;
  std::int64_t held_out = 0;  // tokens of a trial; 0: results are not tried out
  double margin = 0.05;
};

struct SyncSection {
  SyncMethod method = SyncMethod::kLocal;
  trainer::ScheduleConfig schedule{.every = 25};  // its total_steps is training.steps
  double keep_own = 0;                            // of a node's own value when it adopts another
  trainer::AllocationKind allocation = trainer::AllocationKind::kContiguous;
  int replicas = 1;
  std::vector<std::string> owners;  // [expert], nodes as text
  std::vector<FrozenSection> frozen;
  RotationSection rotate;
  ReductionSection shared, experts;
  trainer::MomentsRule moments = trainer::MomentsRule::kKept;
  trainer::MergeConfig merge;
  trainer::CodecConfig up, down;
  int quorum = 0;                                 // uploads that end a round; 0: all nodes
  std::optional<sim::Time> deadline;              // a round ends then with what has arrived
  sim::Time patience = std::chrono::minutes(10);  // with a node whose connection was lost
  trainer::OrphanRule orphans = trainer::OrphanRule::kFrozen;
  trainer::LateRule late = trainer::LateRule::kDrop;
  double staleness_power = 0;
  TrustSection trust;
};

enum class Fidelity { kIdeal, kFluid, kHybrid, kCoarse, kPacket };

// The path between two sites, or within one (a == b), as sim::SitePath from a to b and from b to a.
struct NetworkPath {
  std::string a, b;
  sim::Time rtt{0};
  double bps = 1e9;                // from a to b
  std::optional<double> bps_back;  // from b to a; nothing: as from a to b
  double loss = 0;                 // this and the following: of both directions
  double loss_burst = 1;
  double queue_bdp = 1;
  std::string trace_file;       // from a to b; empty: the constant rate
  std::string trace_back_file;  // from b to a; empty, and no bps_back: as from a to b
  sim::Conditions conditions;
};

// A site whose hosts share an access link on their way to other sites.
struct NetworkSite {
  std::string name;
  LinkSection link;
};

// TCP transfers between hosts of nobody's, which the log's flows do not show.
struct BackgroundSection {
  std::string from, to;                            // sites; empty: the coordinator's
  int flows = 1;                                   // at once
  int streams = 1;                                 // of each
  std::int64_t size_bytes = 0;                     // of a transfer; 0: endless
  sim::Time mean_pause = std::chrono::seconds(5);  // after each transfer
  double link_bps = 10e9;                          // access of the two hosts
};

// How the parameters travel; see sim/traffic/patterns.h.
struct ExchangeSection {
  sim::ExchangePattern pattern = sim::ExchangePattern::kCoordinator;
  std::vector<std::string> coordinators;  // sites of further ones, for the pattern coordinators
  int sends = 0;                          // of a host at once; 0: no limit
};

// Sites exist by being named: in `paths`, in a matrix, by a group or by the coordinator. With
// routing direct every pair of sites where somebody stands needs a path, given inline or by a
// matrix; with routing shortest they must be connected, if only through other sites. Within a site
// no path is needed (no delay, 100 Gbps). The reader turns matrices into paths (with routing direct
// those between the sites where somebody stands), so a scenario as read has no matrix any more.
struct NetworkSection {
  Fidelity fidelity = Fidelity::kPacket;
  sim::Routing routing = sim::Routing::kDirect;
  std::vector<NetworkSite> sites;
  std::vector<NetworkPath> paths;
  std::string matrix;  // see path_matrix.h for the three
  std::string latency_matrix;
  std::string rate_matrix;
  double path_bps = 1e9;  // of the paths of latency_matrix without rate_matrix
  double path_loss = 0;   // of the matrix's paths, as the following
  double path_loss_burst = 1;
  double path_queue_bdp = 1;
  sim::Time trace_interval = std::chrono::milliseconds(100);  // over which traces are averaged
  std::string coordinator_site;                               // empty: the first of the network
  LinkSection coordinator_link{{.down_bps = 10e9, .up_bps = 10e9}};
  ExchangeSection exchange;
  std::vector<BackgroundSection> background;
  sim::TcpConfig tcp;
};

// What goes wrong in simulation; see trainer/runtime/fault_plan.h.
struct ScriptedFault {
  sim::Time at{0};
  trainer::FaultKind kind = trainer::FaultKind::kCrash;
  std::string node;                   // a number, or "coordinator"
  std::optional<sim::Time> duration;  // nothing: for good (crash), or none (corrupt)
  double factor = 1;
};

struct RandomFault {
  trainer::FaultKind kind = trainer::FaultKind::kCrash;
  std::string nodes;  // as text, or "coordinator"; empty: all
  sim::Time mean_between{0};
  std::optional<sim::Time> mean_duration;
  double factor = 1;
};

struct FaultsSection {
  std::vector<ScriptedFault> scripted;
  std::vector<RandomFault> random;
  sim::Time detection = std::chrono::seconds(1);     // until a broken connection is noticed
  sim::Time give_up_after = std::chrono::hours(48);  // without the end of a round
};

enum class TransportKind { kSim, kTcp };
enum class TlsUse { kAuto, kOn, kOff };

// What carries the messages, and how where that is TCP.
struct TransportSection {
  TransportKind kind = TransportKind::kSim;
  TlsUse tls = TlsUse::kAuto;  // kAuto: on, but on one machine without `mutual`
  std::string keys;            // folder as `spes-sim keys` makes it; empty: none
  bool mutual = false;         // nodes show certificates too
  std::string congestion;      // empty: network.tcp.congestion
  std::int64_t chunk_bytes = 1 << 20;
  sim::Time beat_every = std::chrono::seconds(2), dead_after = std::chrono::seconds(15);
  sim::Time give_up_after = std::chrono::minutes(1);
  sim::Time dial_for{0};  // 0: without end
  sim::Time handshake_time = std::chrono::seconds(10);
  sim::Time clock_difference = std::chrono::minutes(5);
  int uploads_in_memory = 2;
  std::string status;  // HOST:PORT of the coordinator's status page; empty: none
};

struct OutputSection {
  std::string log;               // HDF5; empty: results/runs/<scenario name>.h5
  std::string world;             // safetensors; empty: beside the log
  std::int32_t world_every = 0;  // rounds between saved worlds; 0: the end only
  std::int32_t eval_every = 1;   // rounds between evaluations; 0: the start and the end only
  std::optional<sim::Time> links_every;  // between rows of a link; nothing: rounds
  std::string journal;                   // folder; empty: none, or beside the log with tcp
  int journal_last = 2, journal_every = 0;
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
  FaultsSection faults;
  TransportSection transport;
  OutputSection output;
  int workers = 0;                             // threads that train; 0: one per core
  std::vector<std::string> devices = {"cpu"};  // what models are computed on
};

}  // namespace spes::scenarios
