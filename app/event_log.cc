#include "app/event_log.h"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <utility>

#include "app/output_paths.h"
#include "trainer/protocol/messages.h"
#include "trainer/wire/printable.h"

namespace spes::app {

namespace {

constexpr const char* kTextLine = "%Y-%m-%dT%H:%M:%S.%eZ %l %v";
// What is in the message ends the object.
constexpr const char* kJsonLine = R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v)";

spdlog::level::level_enum Level(EventLevel level) {
  switch (level) {
    case EventLevel::kInfo:
      return spdlog::level::info;
    case EventLevel::kWarning:
      return spdlog::level::warn;
    case EventLevel::kError:
      break;
  }
  return spdlog::level::err;
}

// Of the kinds in the log's table of events.
EventLevel LevelOf(const std::string& kind) {
  static const std::set<std::string> warnings = {
      "missing",     "lost",         "late",    "reject",      "refused",
      "dropped",     "renewed",      "damaged", "quarantine",  "quarantined",
      "certificate", "disconnected", "no room", "unreachable", "down"};
  return warnings.contains(kind) ? EventLevel::kWarning : EventLevel::kInfo;
}

spdlog::sink_ptr MakeSink(const EventLogOptions& options) {
  if (options.file.empty()) return std::make_shared<spdlog::sinks::stderr_sink_st>();
  RequireFolderOf(options.file);
  try {
    return std::make_shared<spdlog::sinks::basic_file_sink_st>(options.file);
  } catch (const spdlog::spdlog_ex& error) {
    throw std::invalid_argument(fmt::format(
        "--log-file {}: cannot be written; name a file in a folder that is yours", options.file));
  }
}

}  // namespace

class EventLog::Sink {
 public:
  explicit Sink(const EventLogOptions& options)
      : json(options.format == "json"), logger_("events", MakeSink(options)) {
    logger_.set_formatter(std::make_unique<spdlog::pattern_formatter>(
        json ? kJsonLine : kTextLine, spdlog::pattern_time_type::utc));
    logger_.flush_on(spdlog::level::info);
    logger_.set_error_handler([this](const std::string& what) {
      if (std::exchange(failed_, true)) return;
      std::cerr << "spes-sim: events are missing from the log: " << what.substr(0, what.find('\n'))
                << std::endl;
    });
  }

  void Write(EventLevel level, const std::string& line) {
    logger_.log(Level(level), spdlog::string_view_t(line));
  }

  const bool json;

 private:
  bool failed_ = false;
  spdlog::logger logger_;
};

EventLog::EventLog(const EventLogOptions& options, std::int32_t node) : node_(node) {
  if (options.wanted()) sink_ = std::make_unique<Sink>(options);
}

EventLog::~EventLog() = default;

void EventLog::Write(EventLevel level, std::int32_t node, std::int32_t round, double run_s,
                     std::string_view event, const std::string& detail) {
  if (!sink_) return;
  if (!sink_->json) {
    const std::string who = node == kNoNumberYet ? "node ?"
                            : node < 0           ? "coordinator"
                                                 : fmt::format("node {}", node);
    std::string line = fmt::format("{} round {} {}", who, round, event);
    if (!detail.empty()) line += ": " + detail;
    return sink_->Write(level, trainer::Printable(line));
  }
  nlohmann::ordered_json json = {{"node", nullptr}, {"round", round}, {"run_s", run_s}};
  if (node != kNoNumberYet) json["node"] = node;
  json["event"] = event;
  json["detail"] = detail;
  const std::string object =
      json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  sink_->Write(level, object.substr(1));
}

void EventLog::Say(EventLevel level, std::string_view event, const std::string& detail) {
  Write(level, node_, round_, clock_ ? clock_() : 0, event, detail);
}

void EventLog::Record(const analysis::EventRecord& r) {
  const bool unknown = r.node < 0 && node_ != trainer::kCoordinator;  // its own process's
  Write(LevelOf(r.kind), unknown ? node_ : r.node, round_, r.virtual_s, r.kind, r.detail);
}

void EventLog::Record(const analysis::RoundRecord& r) {
  Write(EventLevel::kInfo, node_, r.round, r.end_s, "round",
        fmt::format("published with {} of {} results after {:.3f} s, mean loss {:.4f}", r.arrived,
                    r.members, r.end_s - r.start_s, r.mean_ce));
  round_ = std::min(r.round + 1, last_round_);
}

void EventLog::Record(const analysis::EvalRecord& r) {
  Write(EventLevel::kInfo, node_, r.round, r.virtual_s, "evaluation",
        fmt::format("{}: held-out loss {:.4f}", r.domain, r.ce));
}

void EventLog::Finish(analysis::RunStatus status, const std::string& world_hash) {
  const bool complete = status == analysis::RunStatus::kComplete;
  Say(complete ? EventLevel::kInfo : EventLevel::kWarning, "end",
      fmt::format("{}, world {}", complete ? "complete" : "interrupted", world_hash));
}

}  // namespace spes::app
