// What happens in a run, as one line per event: for journals of the system, for programs.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/partial_recorder.h"

namespace spes::app {

// --log-format and --log-file.
struct EventLogOptions {
  std::string format;  // text or json; empty: text, and only where `file` names a place
  std::string file;    // lines are added to it; empty: standard error

  bool wanted() const { return !format.empty() || !file.empty(); }
  // Standard error holds records, and nothing for people.
  bool takes_standard_error() const { return wanted() && file.empty(); }
};

enum class EventLevel { kInfo, kWarning, kError };

// Every line has the time (UTC, ISO 8601, to the millisecond), a level (info, warning, error), the
// node that it is about (−1 or "coordinator": the coordinator, or the run as a whole; null or
// "node ?": a node that has no number yet), the round at hand, the kind of event and a detail. In
// JSON these are the members time, level, node, round, event and detail of one object, with run_s,
// the run's clock, 0 before it is known. Lines go out
// at once. A line that cannot be written is lost, and standard error says so once: a full disk does
// not end a run. Called from one thread.
class EventLog final : public analysis::PartialRecorder {
 public:
  static constexpr std::int32_t kNoNumberYet = -2;
  // `node`: whose process this is; −1: the coordinator's. Throws std::invalid_argument, one line,
  // when the file cannot be opened. Where `options` want none, this does nothing.
  EventLog(const EventLogOptions& options, std::int32_t node);
  ~EventLog() override;

  void Say(EventLevel level, std::string_view event, const std::string& detail);
  void SetNode(std::int32_t node) { node_ = node; }
  // Seconds of the run's clock; it must be good as long as anything is said.
  void SetClock(std::function<double()> clock) { clock_ = std::move(clock); }
  // The one at hand, and the last that there will be, where that is known.
  void SetRound(std::int32_t round) { round_ = round; }
  void SetLastRound(std::int32_t round) { last_round_ = round; }

  using PartialRecorder::Record;
  void Record(const analysis::EventRecord& r) override;
  void Record(const analysis::RoundRecord& r) override;
  void Record(const analysis::EvalRecord& r) override;
  void Finish(analysis::RunStatus status, const std::string& world_hash) override;

 private:
  class Sink;
  void Write(EventLevel level, std::int32_t node, std::int32_t round, double run_s,
             std::string_view event, const std::string& detail);

  std::int32_t node_, round_ = 0;
  std::function<double()> clock_;
  std::int32_t last_round_ = std::numeric_limits<std::int32_t>::max();
  std::unique_ptr<Sink> sink_;  // null: nowhere
};

}  // namespace spes::app
