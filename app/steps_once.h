// Records of a run whose coordinator begins anew and counts results again.
#pragma once

#include <cstdint>
#include <map>

#include "analysis/recorder.h"

namespace spes::app {

// Passes everything on, but each step of a node only the first time: a round that is begun anew
// counts the same steps.
class StepsOnce final : public analysis::TeeRecorder {
 public:
  // `to` must outlive it.
  explicit StepsOnce(analysis::Recorder& to) : TeeRecorder({&to}) {}

  using TeeRecorder::Record;
  void Record(const analysis::StepRecord& r) override {
    std::int64_t& last = last_[r.node];
    if (r.step <= last) return;
    last = r.step;
    TeeRecorder::Record(r);
  }

 private:
  std::map<std::int32_t, std::int64_t> last_;  // by node; steps count from 1
};

}  // namespace spes::app
