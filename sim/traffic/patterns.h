// Ways to exchange the same parameters: each makes a traffic plan of one round.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/traffic/plan.h"

namespace spes::sim {

enum class ExchangePattern { kCoordinator, kCoordinators, kRing, kDirect, kTree };
std::string_view Name(ExchangePattern pattern);

// Blocks that the same nodes train: the shared parameters (all nodes do), a node's own experts, or
// experts that several nodes train.
struct Payload {
  std::vector<int> trainers;    // nodes, at least one, each once
  std::int64_t up_bytes = 0;    // of a trainer's values, on their way to be reduced
  std::int64_t down_bytes = 0;  // of the published values
};

// What a round exchanges, and where. Node n is host n.
struct Exchange {
  int nodes = 0;
  std::vector<Payload> payloads;
  // Hosts that reduce and publish: one for kCoordinator, any number for kCoordinators, the root for
  // kTree; kRing and kDirect need none. A node may be one as well.
  std::vector<int> coordinators;
  std::vector<int> sites;  // [node], any numbers; for kTree
  // What one node alone trains comes back to it, because the coordinator changes it (a merge, a
  // codec). In kRing and kDirect nothing comes back: every node has the values of all and changes
  // them alike.
  bool owner_receives = false;
};

// The plan of one round, in which each node gets every payload exactly once, unless it is its only
// trainer (see owner_receives). Transfers of 0 bytes are left out. Throws std::invalid_argument
// with one line when the exchange does not fit together.
//
// kCoordinator: every node to the coordinator; when all have arrived, from there to every node.
// kCoordinators: the same K times; each holds 1/K of every payload.
// kRing: in the order of the nodes. A payload of T trainers is cut in T chunks. Reduce-scatter
//   around the trainers in T − 1 steps (P. Patarasuk, X. Yuan, Bandwidth optimal all-reduce
//   algorithms for clusters of workstations, 2009), then all-gather around all nodes in N − 1
//   steps: each forwards what the step before brought. The blocks of one trainer are in the
//   all-gather only.
// kDirect: the same chunks, each sent by T − 1 trainers straight to the one that reduces it, and by
//   that one to all other nodes; what one node trains goes straight from it to all others at once.
// kTree: members to the head of their site (its first node), which adds up what several of them
//   train; heads to the root; root to heads; heads to members. A block of one trainer reaches the
//   other nodes of its own site from the head alone.
TrafficPlan MakePlan(ExchangePattern pattern, const Exchange& exchange);

}  // namespace spes::sim
