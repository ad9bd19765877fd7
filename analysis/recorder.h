// Where records go.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "analysis/records.h"

namespace spes::analysis {

// Called from one thread. Record may buffer; Flush makes everything so far durable. Throws
// std::runtime_error with one line when the log cannot be written; the log is then whole up to the
// last successful Flush and keeps the status "running" (or "failed" where that can still be
// written).
class Recorder {
 public:
  virtual ~Recorder() = default;
  virtual void Record(const StepRecord& r) = 0;
  virtual void Record(const RoundRecord& r) = 0;
  virtual void Record(const NodeRoundRecord& r) = 0;
  virtual void Record(const FlowRecord& r) = 0;
  virtual void Record(const LinkRecord& r) = 0;
  virtual void Record(const ExpertRecord& r) = 0;
  virtual void Record(const RoutingRecord& r) = 0;
  virtual void Record(const EvalRecord& r) = 0;
  virtual void Record(const MemoryRecord& r) = 0;
  virtual void Record(const EventRecord& r) = 0;
  virtual void Flush() = 0;
  // The last call. `world_hash` may be empty when there is no final world.
  virtual void Finish(RunStatus status, const std::string& world_hash) = 0;
};

// Passes every call to each of its parts, in order.
class TeeRecorder : public Recorder {
 public:
  explicit TeeRecorder(std::vector<Recorder*> parts) : parts_(std::move(parts)) {}
  // Another part, of what comes from now on.
  void Add(Recorder* part) { parts_.push_back(part); }
  void Record(const StepRecord& r) override { All(r); }
  void Record(const RoundRecord& r) override { All(r); }
  void Record(const NodeRoundRecord& r) override { All(r); }
  void Record(const FlowRecord& r) override { All(r); }
  void Record(const LinkRecord& r) override { All(r); }
  void Record(const ExpertRecord& r) override { All(r); }
  void Record(const RoutingRecord& r) override { All(r); }
  void Record(const EvalRecord& r) override { All(r); }
  void Record(const MemoryRecord& r) override { All(r); }
  void Record(const EventRecord& r) override { All(r); }
  void Flush() override;
  void Finish(RunStatus status, const std::string& world_hash) override;

 private:
  template <class R>
  void All(const R& r) {
    for (Recorder* part : parts_) part->Record(r);
  }
  std::vector<Recorder*> parts_;
};

}  // namespace spes::analysis
