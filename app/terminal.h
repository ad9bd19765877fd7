// Lines that show where a run, or a sweep over many, is.
#pragma once

#include <chrono>
#include <string>

#include "analysis/run_summary.h"

namespace spes::app {

// On a terminal the last line of standard error, written over each time; elsewhere lines one below
// the other. Standard output holds results alone.
class LiveLine {
 public:
  LiveLine();
  // Leaves the last line as it is.
  ~LiveLine();

  bool terminal() const { return terminal_; }
  void Show(const std::string& line);
  // A line that stays, above the live one.
  void Print(const std::string& line);
  // The line is done with: what follows begins on a fresh one.
  void End();

 private:
  bool terminal_;
  bool open_ = false;  // the cursor stands behind an unfinished line
};

// On a terminal one line, rewritten a few times a second; otherwise a line when a round begins and
// at least every half minute.
class ProgressDisplay {
 public:
  explicit ProgressDisplay(bool quiet) : quiet_(quiet) {}

  // Cheap when nothing is due.
  void Show(const analysis::Progress& progress);
  // Stands behind the progress from now on. Where lines are not rewritten, a line is due when `who`
  // is another than before.
  void SetNote(const std::string& who, const std::string& text);
  // A line that stays.
  void Print(const std::string& line) {
    if (!quiet_) line_.Print(line);
  }
  void End() { line_.End(); }

 private:
  using Clock = std::chrono::steady_clock;

  bool quiet_;
  LiveLine line_;
  int shown_round_ = -1;
  std::string note_, note_of_;
  bool note_due_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_;
};

}  // namespace spes::app
