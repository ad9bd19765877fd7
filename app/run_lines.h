// What the coordinator's terminal says of who takes part in a run of real machines.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>

#include "analysis/partial_recorder.h"
#include "trainer/protocol/coordinator.h"

namespace spes::app {

// A short line for each node that comes or goes and for whoever is not let in; of the latter at
// most one every ten seconds, with the number of those since.
class RunLines final : public analysis::PartialRecorder {
 public:
  using Print = std::function<void(const std::string& line)>;
  // `all`: everything; otherwise warnings only. `patience_s`: see sync.patience.
  RunLines(bool all, double patience_s, Print print);

  using PartialRecorder::Record;
  void Record(const analysis::EventRecord& r) override;

  // Whom the run waits for at `now_s` of its clock; empty: nobody. `who` does not change with time
  // alone.
  struct Waiting {
    std::string who, text;
  };
  Waiting WaitingFor(const trainer::Coordinator& coordinator, double now_s) const;

 private:
  using Clock = std::chrono::steady_clock;

  bool all_;
  double patience_s_;
  Print print_;
  std::map<int, double> missing_since_s_;  // by node
  Clock::time_point next_refusal_ = {};
  int refusals_ = 0;  // since the last line of one
};

}  // namespace spes::app
