// What each round of a run moves when parameters travel by an exchange pattern instead of within
// the messages, and what is charged for it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/network.h"
#include "sim/traffic/patterns.h"
#include "sim/traffic/plan.h"
#include "trainer/protocol/messages.h"
#include "trainer/protocol/schedule.h"
#include "trainer/sync/allocation.h"
#include "trainer/sync/codec.h"
#include "trainer/sync/merge.h"

namespace spes::trainer {

// How blocks are written down.
struct PayloadCoding {
  CodecConfig up, down;
  bool moments = false;  // optimiser moments travel with the blocks, both ways
};

// The blocks that are due ([block]; empty: all) by who trains them: one payload for each set of
// trainers, in the order of the sets. A block takes its elements, or its largest code where that is
// smaller, moments where they travel, and kBlockHeaderBytes.
std::vector<sim::Payload> PayloadsOf(const BlockTable& table, const Allocation& allocation,
                                     const std::vector<bool>& due = {},
                                     const PayloadCoding& coding = {});

struct ExchangeConfig {
  sim::ExchangePattern pattern = sim::ExchangePattern::kCoordinator;
  // Hosts of the network; node n is host n. The first is the protocol's coordinator; the others
  // count for the pattern kCoordinators alone.
  std::vector<int> coordinators;
  std::vector<int> sites;  // [node]
  // Which rounds change the experts of others: those in which experts are merged.
  MergeConfig merge;
  ScheduleConfig schedule;
  PayloadCoding coding;
  // What is published of an expert is never what its owner sent: an outer step comes between.
  bool steps_experts = false;
};

// Immutable. Rounds are counted from 1; in each all nodes take part, by the same allocation.
class ExchangeSchedule {
 public:
  // Throws std::invalid_argument as sim::MakePlan.
  ExchangeSchedule(const BlockTable& table, const Allocation& allocation,
                   const ExchangeConfig& config);

  const Schedule& rounds() const { return rounds_; }
  std::string_view name() const { return sim::Name(config_.pattern); }
  int nodes() const { return nodes_; }
  const std::vector<int>& coordinators() const { return config_.coordinators; }
  int hosts() const { return hosts_; }  // one more than the last that a plan names

  // How the log and messages call a host of the plans: a node by its number, "node 3"; the
  // coordinator −1, "the coordinator"; further ones −2, "coordinator 2", and so on.
  std::int32_t IdOf(int host) const;
  std::string NameOf(int host) const;
  // One line about a transfer that was not completed, and its round.
  std::string FailureText(std::int32_t round, const sim::FlowResult& result) const;

  // There are as many plans as kinds of rounds.
  int kinds() const { return static_cast<int>(kinds_.size()); }
  int KindOf(std::int32_t round) const { return kind_[static_cast<std::size_t>(round - 1)]; }
  const sim::TrafficPlan& plan(int kind) const { return at(kind).plan; }

  // What a host sends and receives in a round.
  const sim::HostBytes& BytesOf(int host, std::int32_t round) const {
    return at(KindOf(round)).bytes[static_cast<std::size_t>(host)];
  }

  // Bytes of a message between the coordinator and `node`: of an offer what the node sends in its
  // round, of an update what it receives, of others their own. For CoordinatorConfig::charge.
  std::int64_t Charge(NodeId node, const Message& message, const BlockTable& table) const;

 private:
  struct Kind {
    sim::TrafficPlan plan;
    std::vector<sim::HostBytes> bytes;  // [host]
  };
  const Kind& at(int kind) const { return kinds_[static_cast<std::size_t>(kind)]; }

  ExchangeConfig config_;
  Schedule rounds_;
  int nodes_;
  int hosts_;
  std::vector<Kind> kinds_;
  std::vector<int> kind_;  // [round − 1]
};

}  // namespace spes::trainer
