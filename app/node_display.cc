#include "app/node_display.h"

#include <fmt/format.h>

#include "analysis/quantities.h"

namespace spes::app {

namespace {

constexpr std::chrono::minutes kAgain{1};
constexpr std::chrono::seconds kBlink{5};  // a connection that breaks is mostly back by then

std::string For(std::chrono::steady_clock::duration d) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(d);
  return analysis::FormatDuration(static_cast<double>(seconds.count()));
}

}  // namespace

NodeDisplay::NodeDisplay(bool quiet, bool takes_standard_error, EventLog& events)
    : quiet_(quiet || takes_standard_error),
      takes_standard_error_(takes_standard_error),
      events_(events) {}

void NodeDisplay::Record(const analysis::EventRecord& r) {
  if (r.kind == "certificate") return Warn(r.kind, r.detail);
  events_.Record(r);
  if (r.kind == "disconnected" || r.kind == "unreachable" || r.kind == "dropped") {
    trouble_ = r.detail;
  }
}

bool NodeDisplay::Due(const std::string& what, Clock::time_point now) {
  if (what == said_ && now - said_at_ < kAgain) return false;
  said_ = what;
  said_at_ = now;
  return true;
}

void NodeDisplay::Waiting(const std::string& why) {
  const Clock::time_point now = Clock::now();
  if (!alone_since_) alone_since_ = now;
  if (!Due(why, now)) return;
  const bool first = now - *alone_since_ < kBlink;
  const std::string detail = fmt::format("for the coordinator{}: {}",
                                         first ? "" : ", since " + For(now - *alone_since_), why);
  Say("waiting", detail, "waiting " + detail);
}

void NodeDisplay::ShowConnection(bool connected) {
  const Clock::time_point now = Clock::now();
  if (connected) {
    if (alone_) Say("back", "the coordinator is reached again");
    alone_since_.reset();
    alone_ = false;
    said_.clear();
    return;
  }
  if (!alone_since_) alone_since_ = now;
  const auto alone = now - *alone_since_;
  if (alone < kBlink || !Due("alone: " + trouble_, now)) return;
  alone_ = true;
  Warn("alone", fmt::format("no connection to the coordinator for {}{}; dialling on", For(alone),
                            trouble_.empty() ? "" : ": " + trouble_));
}

void NodeDisplay::Show(int node, const trainer::Peer& peer, const trainer::TcpNodeStatus& status) {
  if (state_) {
    ShowConnection(status.connected);
  } else {
    alone_since_.reset();  // the first connections come one by one
    said_.clear();
  }
  events_.SetRound(peer.round());
  if (peer.state() != state_ || peer.round() != round_) {
    state_ = peer.state();
    round_ = peer.round();
    events_.Say(EventLevel::kInfo, "state", std::string(Name(peer.state())));
  }
  if (quiet_) return;
  const std::string text = fmt::format("node {}: round {}, {}{}", node, peer.round(),
                                       Name(peer.state()), alone_ ? ", without a connection" : "");
  if (line_.terminal()) {
    line_.Show(status.transfer_bytes == 0
                   ? text
                   : fmt::format("{} ({} of {} KiB)", text, status.transfer_done >> 10,
                                 status.transfer_bytes >> 10));
  } else if (text != shown_) {
    line_.Print(text);
  }
  shown_ = text;
}

void NodeDisplay::Say(std::string_view event, const std::string& detail, const std::string& line) {
  events_.Say(EventLevel::kInfo, event, detail);
  if (!quiet_) line_.Print(line.empty() ? detail : line);
}

void NodeDisplay::Warn(std::string_view event, const std::string& text) {
  events_.Say(EventLevel::kWarning, event, text);
  if (!takes_standard_error_) line_.Print("spes-sim: warning: " + text);
}

}  // namespace spes::app
