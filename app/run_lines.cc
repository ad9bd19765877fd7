#include "app/run_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "analysis/quantities.h"

namespace spes::app {

namespace {

constexpr std::chrono::seconds kQuiet{10};
constexpr std::size_t kMostNamed = 8;

std::string Nodes(const std::vector<int>& nodes) {
  std::string text = nodes.size() == 1 ? "node " : "nodes ";
  for (std::size_t i = 0; i < std::min(nodes.size(), kMostNamed); ++i) {
    text += fmt::format("{}{}", i > 0 ? ", " : "", nodes[i]);
  }
  if (nodes.size() > kMostNamed) text += fmt::format(" and {} more", nodes.size() - kMostNamed);
  return text;
}

// Without decimals: it is shown while it grows.
std::string Whole(double seconds) {
  return seconds < 60 ? fmt::format("{:.0f} s", std::floor(seconds))
                      : analysis::FormatDuration(std::floor(seconds));
}

}  // namespace

RunLines::RunLines(bool all, double patience_s, Print print)
    : all_(all), patience_s_(patience_s), print_(std::move(print)) {}

void RunLines::Record(const analysis::EventRecord& r) {
  if (r.kind == "missing" || r.kind == "awaited") missing_since_s_[r.node] = r.virtual_s;
  static const std::set<std::string> news = {"join", "reconnected", "new certificate"};
  static const std::set<std::string> warnings = {"missing",     "lost",        "quarantine",
                                                 "quarantined", "certificate", "no room"};
  const bool turned_away = r.kind == "refused" || r.kind == "dropped";
  const bool is_warning = turned_away || warnings.contains(r.kind);
  if (!is_warning && !(all_ && news.contains(r.kind))) return;
  std::string line = r.node >= 0 ? fmt::format("node {}: {}", r.node, r.kind) : r.kind;
  if (!r.detail.empty()) line += ": " + r.detail;
  if (turned_away) {
    const Clock::time_point now = Clock::now();
    if (now < next_refusal_) {
      ++refusals_;
      return;
    }
    next_refusal_ = now + kQuiet;
    if (refusals_ > 0) line += fmt::format(" (and {} more since the last such line)", refusals_);
    refusals_ = 0;
  }
  print_((is_warning ? "warning: " : "") + line);
}

RunLines::Waiting RunLines::WaitingFor(const trainer::Coordinator& coordinator,
                                       double now_s) const {
  const trainer::CoordinatorPhase phase = coordinator.phase();
  if (phase == trainer::CoordinatorPhase::kFinished) return {};
  const std::vector<trainer::MemberStatus> members = coordinator.Members();
  const bool begins = phase == trainer::CoordinatorPhase::kWaiting;
  std::vector<int> absent;
  std::size_t here = 0;
  double longest_s = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const int node = static_cast<int>(i);
    here += members[i].state == "idle" || members[i].state == "training";
    const bool missing = members[i].state == "missing";
    if (!missing && !(begins && members[i].state == "absent")) continue;
    absent.push_back(node);
    const auto since = missing_since_s_.find(node);
    if (missing && since != missing_since_s_.end()) {
      longest_s = std::max(longest_s, now_s - since->second);
    }
  }
  if (absent.empty()) return {};
  const std::string who = "waiting for " + Nodes(absent);
  if (begins) return {who, fmt::format("{} ({} of {} here)", who, here, members.size())};
  return {who, fmt::format("{}, lost {} ago, up to {}", who, Whole(longest_s), Whole(patience_s_))};
}

}  // namespace spes::app
