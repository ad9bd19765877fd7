// Keeps every record, for tests to look at.
#pragma once

#include <string>
#include <vector>

#include "analysis/recorder.h"

namespace spes::trainer {

class MemoryRecorder final : public analysis::Recorder {
 public:
  void Record(const analysis::StepRecord& r) override { steps.push_back(r); }
  void Record(const analysis::RoundRecord& r) override { rounds.push_back(r); }
  void Record(const analysis::NodeRoundRecord& r) override { node_rounds.push_back(r); }
  void Record(const analysis::FlowRecord& r) override { flows.push_back(r); }
  void Record(const analysis::LinkRecord& r) override { links.push_back(r); }
  void Record(const analysis::ExpertRecord& r) override { experts.push_back(r); }
  void Record(const analysis::RoutingRecord& r) override { routing.push_back(r); }
  void Record(const analysis::EvalRecord& r) override { evals.push_back(r); }
  void Record(const analysis::MemoryRecord& r) override { memory.push_back(r); }
  void Record(const analysis::EventRecord& r) override { events.push_back(r); }
  void Flush() override {}
  void Finish(analysis::RunStatus, const std::string&) override {}

  // "kind: detail" of the events of one kind.
  std::vector<std::string> Events(const std::string& kind) const {
    std::vector<std::string> found;
    for (const auto& event : events) {
      if (event.kind == kind) found.push_back(event.detail);
    }
    return found;
  }

  std::vector<analysis::StepRecord> steps;
  std::vector<analysis::RoundRecord> rounds;
  std::vector<analysis::NodeRoundRecord> node_rounds;
  std::vector<analysis::FlowRecord> flows;
  std::vector<analysis::LinkRecord> links;
  std::vector<analysis::ExpertRecord> experts;
  std::vector<analysis::RoutingRecord> routing;
  std::vector<analysis::EvalRecord> evals;
  std::vector<analysis::MemoryRecord> memory;
  std::vector<analysis::EventRecord> events;
};

}  // namespace spes::trainer
