#include "app/terminal.h"

#include <unistd.h>

#include <iostream>
#include <utility>

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
  const bool due = std::exchange(note_due_, false);
  if (now < next_ && !due && (line_.terminal() || progress.round == shown_round_)) return;
  next_ = now + (line_.terminal() ? Clock::duration(kRewrite) : Clock::duration(kPlainLine));
  shown_round_ = progress.round;
  const double wall_s = std::chrono::duration<double>(now - start_).count();
  const std::string line = analysis::ProgressLine(progress, wall_s);
  line_.Show(note_.empty() ? line : line + "   " + note_);
}

void ProgressDisplay::SetNote(const std::string& who, const std::string& text) {
  note_ = text;
  if (who != note_of_ && !who.empty()) note_due_ = true;
  note_of_ = who;
}

}  // namespace spes::app
