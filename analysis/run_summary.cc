#include "analysis/run_summary.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "analysis/statistics.h"

namespace spes::analysis {

RunSummary::RunSummary(RunPlan plan) {
  totals_.plan = plan;
  totals_.rounds = plan.first_round - 1;
  totals_.steps = plan.steps_before;
}

void RunSummary::Record(const StepRecord& r) {
  round_ = std::max(round_, r.round);
  ++steps_done_;
  totals_.steps = std::max(totals_.steps, r.step);
  totals_.tokens += r.tokens;
  totals_.virtual_s = std::max(totals_.virtual_s, r.virtual_s);
  latest_ce_[r.node] = r.ce;
}

void RunSummary::Record(const RoundRecord& r) {
  round_ = std::max(round_, r.round);
  ++totals_.rounds;
  totals_.virtual_s = std::max(totals_.virtual_s, r.end_s);
}

void RunSummary::Record(const NodeRoundRecord& r) {
  NodeTotals& node = nodes_[r.node];
  node.node = r.node;
  ++node.rounds;
  node.compute_s += r.compute_s;
  node.up_s += r.up_s;
  node.wait_s += r.wait_s;
  node.down_s += r.down_s;
  node.up_bytes += r.up_bytes;
  node.down_bytes += r.down_bytes;
  totals_.virtual_s =
      std::max(totals_.virtual_s, r.start_s + r.compute_s + r.up_s + r.wait_s + r.down_s);
}

void RunSummary::Record(const LinkRecord& r) {
  LinkSums& link = links_[r.link];
  link.name = r.name;
  link.wire_bytes += r.wire_bytes;
  link.capacity_bytes += r.capacity_bytes;
  link.duration_s += r.end_s - r.start_s;
  links_until_s_ = std::max(links_until_s_, r.end_s);
}

void RunSummary::Record(const EvalRecord& r) {
  const auto same = std::ranges::find(totals_.evals, r.domain, &EvalRecord::domain);
  if (same == totals_.evals.end()) {
    totals_.evals.push_back(r);
  } else if (r.round >= same->round) {
    *same = r;
  }
}

void RunSummary::Record(const MemoryRecord& r) {
  if (r.node >= 0 && r.predicted_bytes > 0) memory_[r.node] += r.predicted_bytes;
  if (r.node == -2) {
    totals_.process_memory_bytes =
        std::max(totals_.process_memory_bytes, static_cast<double>(r.measured_bytes));
  }
}

void RunSummary::Record(const EventRecord& r) {
  constexpr std::string_view kFault = "fault/";
  if (r.kind == "down") {
    down_since_s_[r.node] = r.virtual_s;
  } else if (r.kind == "up") {
    const auto since = down_since_s_.extract(r.node);
    if (since) totals_.down_s += r.virtual_s - since.mapped();
  } else if (r.kind.starts_with(kFault) && r.kind != "fault/over") {
    ++totals_.faults[r.kind.substr(kFault.size())];
  }
}

void RunSummary::Finish(RunStatus status, const std::string& world_hash) {
  totals_.status = status;
  totals_.world_hash = world_hash;
}

Progress RunSummary::progress() const {
  double sum = 0;
  for (const auto& [node, ce] : latest_ce_) sum += ce;
  const RunPlan& plan = totals_.plan;
  return {.round = std::min(std::max(round_, plan.first_round), plan.rounds),
          .rounds = plan.rounds,
          .virtual_s = totals_.virtual_s,
          .done = std::min(1.0, Share(steps_done_, static_cast<double>(plan.steps) * plan.nodes)),
          .tokens = totals_.tokens,
          .ce = latest_ce_.empty() ? std::numeric_limits<double>::quiet_NaN()
                                   : sum / static_cast<double>(latest_ce_.size()),
          .real = plan.real};
}

std::optional<LinkTotals> RunSummary::BusiestLink() const {
  const double whole_s = std::max(totals_.virtual_s, links_until_s_);
  std::optional<LinkTotals> busiest;
  for (const auto& [index, link] : links_) {
    const double could = Share(static_cast<double>(link.capacity_bytes), link.duration_s) * whole_s;
    const double used = Share(static_cast<double>(link.wire_bytes), could);
    if (used > (busiest ? busiest->utilisation : 0)) busiest = {link.name, link.wire_bytes, used};
  }
  return busiest;
}

RunTotals RunSummary::totals() const {
  RunTotals totals = totals_;
  totals.busiest_link = BusiestLink();
  for (const auto& [node, since_s] : down_since_s_) {
    totals.down_s += std::max(0.0, totals.virtual_s - since_s);
  }
  for (const auto& [node, sums] : nodes_) totals.nodes.push_back(sums);
  for (const auto& [node, bytes] : memory_) totals.node_memory_bytes.push_back(bytes);
  return totals;
}

}  // namespace spes::analysis
