// A recorder of some kinds of records.
#pragma once

#include <string>

#include "analysis/recorder.h"

namespace spes::analysis {

// Ignores what is not overridden.
class PartialRecorder : public Recorder {
 public:
  void Record(const StepRecord&) override {}
  void Record(const RoundRecord&) override {}
  void Record(const NodeRoundRecord&) override {}
  void Record(const FlowRecord&) override {}
  void Record(const LinkRecord&) override {}
  void Record(const ExpertRecord&) override {}
  void Record(const RoutingRecord&) override {}
  void Record(const EvalRecord&) override {}
  void Record(const MemoryRecord&) override {}
  void Record(const EventRecord&) override {}
  void Flush() override {}
  void Finish(RunStatus, const std::string&) override {}
};

}  // namespace spes::analysis
