#include "app/terminal.h"

#include <unistd.h>

#include <iostream>

#include "analysis/summary_text.h"

namespace spes::app {

namespace {
constexpr std::chrono::milliseconds kRewrite{200};
constexpr std::chrono::seconds kPlainLine{30};
constexpr const char* kClear = "\r\x1b[K";  // to the line's start, and clear it
}  // namespace

LiveLine::LiveLine() : terminal_(isatty(STDERR_FILENO) != 0) {}

LiveLine::~LiveLine() { End(); }

void LiveLine::Show(const std::string& line) {
  if (!terminal_) {
    std::cerr << line << std::endl;
    return;
  }
  std::cerr << kClear << line << std::flush;
  open_ = true;
}

void LiveLine::Print(const std::string& line) {
  std::cerr << (open_ ? kClear : "") << line << std::endl;
  open_ = false;
}

void LiveLine::End() {
  if (open_) std::cerr << std::endl;
  open_ = false;
}

void ProgressDisplay::Show(const analysis::Progress& progress) {
  if (quiet_) return;
  const Clock::time_point now = Clock::now();
  if (now < next_ && (line_.terminal() || progress.round == shown_round_)) return;
  next_ = now + (line_.terminal() ? Clock::duration(kRewrite) : Clock::duration(kPlainLine));
  shown_round_ = progress.round;
  const double wall_s = std::chrono::duration<double>(now - start_).count();
  line_.Show(analysis::ProgressLine(progress, wall_s));
}

}  // namespace spes::app
