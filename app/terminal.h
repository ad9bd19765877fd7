// The line that shows where a run is.
#pragma once

#include <chrono>

#include "analysis/run_summary.h"

namespace spes::app {

// On a terminal one line, rewritten a few times a second; otherwise a line when a round begins and
// at least every half minute. Writes to standard error, so that standard output holds the summary
// alone.
class ProgressDisplay {
 public:
  explicit ProgressDisplay(bool quiet);
  // Leaves the last line as it is.
  ~ProgressDisplay();

  // Cheap when nothing is due.
  void Show(const analysis::Progress& progress);
  // The line is done with: what follows begins on a fresh one.
  void End();

 private:
  using Clock = std::chrono::steady_clock;

  bool quiet_;
  bool terminal_;
  bool open_ = false;  // the cursor stands behind an unfinished line
  int shown_round_ = -1;
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_;
};

}  // namespace spes::app
