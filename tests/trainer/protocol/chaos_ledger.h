// Watches a run from outside and recomputes each round's world from the results that counted in it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/partial_recorder.h"
#include "tests/trainer/protocol/chaos_node.h"
#include "tests/trainer/protocol/chaos_settings.h"
#include "tests/trainer/protocol/memory_recorder.h"
#include "trainer/protocol/coordinator.h"
#include "trainer/protocol/schedule.h"

namespace spes::trainer {

class ChaosLedger {
 public:
  ChaosLedger(const ChaosSettings& settings, const World& world);

  // What goes wrong is told to `wrong`, one line each.
  std::function<void(const std::string&)> wrong;

  // A coordinator's process begins.
  void OnCoordinatorBegins();
  // A node begins, or takes up the state of an earlier time.
  void OnNodeBegins(NodeId node);
  // On its way to the receiver, with all values.
  void OnOffer(NodeId from, const Offer& offer) { offers_[{from, offer.span.round}] = offer; }
  void OnSent(NodeId to, const Message& message);
  // It arrives at the node.
  void OnReceived(NodeId node, const Message& message);
  // A result counts: its first step is recorded.
  void OnCounted(const analysis::StepRecord& step);
  void OnJournalled(const CoordinatorState& state);
  void OnPublished(const PublishedRound& published);
  void OnTrains(NodeId node, std::int64_t first_step, const ChaosNode& state);
  void OnAdopts(NodeId node, const NodeBlock& block);

  std::int32_t rounds() const { return static_cast<std::int32_t>(worlds_.size()) - 1; }

 private:
  struct Contribution {
    NodeId node;
    SharedBuffer data;
    double weight;  // of a mean by tokens; and of another one
    double factor;
  };
  void Explain(std::int32_t round, const World& published);
  std::map<BlockId, std::vector<Contribution>> Contributions(std::int32_t round);
  SharedBuffer Reduced(const ReductionRule& rule, const std::vector<Contribution>& from) const;
  void Step(std::int32_t round, World& world, const std::set<BlockId>& contributed);
  void Code(std::int32_t round, World& world);
  bool Same(BlockId id, const Buffer& a, const Buffer& b) const;
  std::int32_t RoundOf(std::int64_t step) const;

  const ChaosSettings& settings_;
  std::shared_ptr<const BlockTable> table_;
  Schedule schedule_;
  bool journalled_ = false;
  std::vector<World> worlds_;  // [round]
  std::map<BlockId, std::vector<double>> velocity_;
  std::map<BlockId, AdamMoments> adam_;
  Residuals residuals_;
  std::map<std::pair<NodeId, std::int32_t>, Offer> offers_;      // the latest by node and round
  std::set<std::pair<NodeId, std::int32_t>> counted_, settled_;  // in the round at hand; before
  std::vector<std::map<BlockId, Version>> adopted_;              // [node]: by its process
};

// Passes what a coordinator records on to a ledger and a trace.
class ChaosRecorder final : public analysis::PartialRecorder {
 public:
  ChaosRecorder(ChaosLedger& ledger, std::function<void(const std::string&)> trace)
      : ledger_(ledger), trace_(std::move(trace)) {}
  using PartialRecorder::Record;
  void Record(const analysis::StepRecord& r) override { ledger_.OnCounted(r); }
  void Record(const analysis::EventRecord& r) override {
    ++events[r.kind];
    if (trace_) trace_("event " + std::to_string(r.node) + " " + r.kind + ": " + r.detail);
  }

  std::map<std::string, int> events;  // by kind

 private:
  ChaosLedger& ledger_;
  std::function<void(const std::string&)> trace_;
};

}  // namespace spes::trainer
