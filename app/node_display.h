// What a node of a real run says: on the terminal and as events.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "analysis/partial_recorder.h"
#include "app/event_log.h"
#include "app/terminal.h"
#include "trainer/protocol/peer.h"
#include "trainer/runtime/tcp/tcp_runtime.h"

namespace spes::app {

// A line, and an event, whenever the node does something else. While it cannot reach the
// coordinator: when that begins, when the reason changes, and every minute. As a recorder it passes
// events on to `events`.
class NodeDisplay final : public analysis::PartialRecorder {
 public:
  // Warnings are for the quiet, too, unless standard error holds records.
  NodeDisplay(bool quiet, bool takes_standard_error, EventLog& events);

  using PartialRecorder::Record;
  void Record(const analysis::EventRecord& r) override;

  // A try to be let in has failed.
  void Waiting(const std::string& why);
  // Often, once it is let in.
  void Show(int node, const trainer::Peer& peer, const trainer::TcpNodeStatus& status);

  // `line`: for the terminal, where that says more than the detail of the event.
  void Say(std::string_view event, const std::string& detail, const std::string& line = "");
  void Warn(std::string_view event, const std::string& text);
  void End() { line_.End(); }

 private:
  using Clock = std::chrono::steady_clock;
  // Whether `what` is to be said now: it is another than before, or a minute has passed.
  bool Due(const std::string& what, Clock::time_point now);
  void ShowConnection(bool connected);

  bool quiet_, takes_standard_error_;
  EventLog& events_;
  LiveLine line_;
  std::string said_, shown_, trouble_;
  Clock::time_point said_at_ = {};
  std::optional<Clock::time_point> alone_since_;
  bool alone_ = false;  // and it has been said
  std::optional<trainer::PeerState> state_;
  std::int32_t round_ = 0;
};

}  // namespace spes::app
