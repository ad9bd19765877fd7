#include "app/status_board.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "app/memory_report.h"

namespace spes::app {

namespace {

constexpr std::chrono::seconds kEvery{1};

std::string StateOf(trainer::CoordinatorPhase phase) {
  return trainer::kRunStates[static_cast<std::size_t>(phase)];
}

}  // namespace

StatusBoard::StatusBoard(const std::string& address, trainer::StatusReport plan,
                         std::int64_t step_tokens)
    : report_(std::move(plan)), step_tokens_(step_tokens) {
  report_.states.assign(std::begin(trainer::kMemberStates), std::end(trainer::kMemberStates));
  report_.state = StateOf(trainer::CoordinatorPhase::kWaiting);
  for (trainer::NodeReport& node : report_.nodes) node.state = report_.states.front();
  try {
    server_ = trainer::ServeStatus(address, std::make_shared<const trainer::StatusReport>(report_));
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(fmt::format("transport.status: {}", error.what()));
  }
}

void StatusBoard::Record(const analysis::NodeRoundRecord& r) {
  const auto node = static_cast<std::size_t>(r.node);
  if (node < report_.nodes.size()) report_.nodes[node].upload_s = r.up_s;
}

void StatusBoard::Tick(const Engine& engine, const analysis::RunSummary& summary, bool stopping) {
  const trainer::Coordinator* const there = engine.coordinator();
  if (stopping) {
    report_.state = "stopping";
  } else if (there != nullptr) {
    report_.state = StateOf(there->phase());
  }
  const Clock::time_point now = Clock::now();
  if (now < next_ && report_.state == shown_state_) return;
  next_ = now + kEvery;
  shown_state_ = report_.state;
  if (there == nullptr) return Publish();  // its process is down: the rest stays as it was
  const trainer::Coordinator& coordinator = *there;
  report_.round = coordinator.round();
  report_.step = coordinator.step();
  report_.run_s = engine.NowSeconds();
  report_.process_s = std::chrono::duration<double>(now - start_).count();
  report_.tokens = engine.steps_done() * step_tokens_;
  report_.resident_bytes = ResidentBytes();
  report_.certificate_expires_s = engine.certificate_expires_s();
  const analysis::RunTotals totals = summary.totals();
  report_.bytes = 0;
  for (const analysis::NodeTotals& node : totals.nodes) {
    report_.bytes += node.up_bytes + node.down_bytes;
  }
  report_.evals.clear();
  for (const analysis::EvalRecord& eval : totals.evals) {
    report_.evals.push_back({eval.domain, eval.ce});
  }
  const std::vector<trainer::MemberStatus> members = coordinator.Members();
  for (std::size_t node = 0; node < members.size(); ++node) {
    trainer::NodeReport& shown = report_.nodes[node];
    shown.state = members[node].state;
    shown.last_round = members[node].contributed;
    shown.connection = engine.ConnectionOf(static_cast<int>(node));
  }
  Publish();
}

void StatusBoard::Publish() {
  report_.published = Clock::now();
  server_->Publish(std::make_shared<const trainer::StatusReport>(report_));
}

}  // namespace spes::app
