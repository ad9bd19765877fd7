#include "app/terminal.h"

#include <unistd.h>

#include <iostream>

#include "analysis/summary_text.h"

namespace spes::app {

namespace {
constexpr std::chrono::milliseconds kRewrite{200};
constexpr std::chrono::seconds kPlainLine{30};
}  // namespace

ProgressDisplay::ProgressDisplay(bool quiet)
    : quiet_(quiet), terminal_(isatty(STDERR_FILENO) != 0) {}

ProgressDisplay::~ProgressDisplay() { End(); }

void ProgressDisplay::Show(const analysis::Progress& progress) {
  if (quiet_) return;
  const Clock::time_point now = Clock::now();
  if (now < next_ && (terminal_ || progress.round == shown_round_)) return;
  next_ = now + (terminal_ ? Clock::duration(kRewrite) : Clock::duration(kPlainLine));
  shown_round_ = progress.round;
  const double wall_s = std::chrono::duration<double>(now - start_).count();
  const std::string line = analysis::ProgressLine(progress, wall_s);
  if (terminal_) {
    std::cerr << "\r\x1b[K" << line << std::flush;  // to the line's start, and clear it
    open_ = true;
  } else {
    std::cerr << line << std::endl;
  }
}

void ProgressDisplay::End() {
  if (open_) std::cerr << std::endl;
  open_ = false;
}

}  // namespace spes::app
