// What the links of the network carry, over time, for the log.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "analysis/recorder.h"
#include "sim/network.h"

namespace spes::trainer {

// A network that passes everything on to the one it holds, and on the way takes samples: a row for
// each link that has carried or lost something since the last one, so that the rows of a link add
// up to its Usage. It adds no event to a loop and changes no time, only where AdvanceTo halts.
class LinkSampler final : public sim::Network {
 public:
  // Takes a sample at each multiple of `every`, while flows are active, and one when they begin
  // again; nothing: only where Sample is called. `every` is positive. `recorder` must outlive it.
  LinkSampler(std::unique_ptr<sim::Network> network, analysis::Recorder& recorder,
              std::optional<sim::Time> every);

  // Records what has passed since the last sample up to Now. False when there was nothing.
  bool Sample();

  sim::Time Now() const override { return network_->Now(); }
  void Prepare(int from, int to, int streams) override { network_->Prepare(from, to, streams); }
  sim::FlowId Start(const sim::Flow& flow, OnDone done) override {
    return network_->Start(flow, std::move(done));
  }
  void Cancel(sim::FlowId id) override { network_->Cancel(id); }
  std::optional<sim::Time> NextEvent() const override { return network_->NextEvent(); }
  // Returns early at samples too.
  sim::Time AdvanceTo(sim::Time t) override;
  const sim::LinkGraph& graph() const override { return network_->graph(); }
  std::vector<sim::LinkUsage> Usage() const override { return network_->Usage(); }

 private:
  std::unique_ptr<sim::Network> network_;
  analysis::Recorder& recorder_;
  std::optional<sim::Time> every_;
  sim::Time since_{0};                   // of the last sample
  std::vector<sim::LinkUsage> counted_;  // [link] in the rows so far
  bool moving_ = false;                  // the next multiple is to be sampled
};

}  // namespace spes::trainer
