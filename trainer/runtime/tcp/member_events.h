// Events of a run with members who may do anything, for the log and for people.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "analysis/recorder.h"

namespace spes::trainer {

// Passes on all records, but of one node and kind at most kMost events every kQuietSeconds of the
// run's clock; the next one after that counts the others. What a member does over and over is not
// to become a flood of rows. The coordinator's own events are its own to limit; see Refusals.
class MemberEvents final : public analysis::TeeRecorder {
 public:
  using TeeRecorder::Record;
  using TeeRecorder::TeeRecorder;
  void Record(const analysis::EventRecord& r) override;

  static constexpr double kQuietSeconds = 10;
  static constexpr int kMost = 64;

 private:
  struct Seen {
    double since_s = 0;
    int rows = 0;             // since then,
    std::int64_t unsaid = 0;  // and those beyond kMost
  };
  std::map<std::pair<std::int32_t, std::string>, Seen> seen_;  // by node and kind
};

}  // namespace spes::trainer
