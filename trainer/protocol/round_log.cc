#include "trainer/protocol/round_log.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "trainer/protocol/round_statistics.h"

namespace spes::trainer {

namespace {
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
}

RoundLog::RoundLog(std::shared_ptr<const BlockTable> table, analysis::Recorder& recorder)
    : table_(std::move(table)),
      recorder_(recorder),
      load_(static_cast<std::size_t>(table_->experts()), 0),
      delivered_(static_cast<std::size_t>(table_->size()), 0) {}

void RoundLog::Begin(std::int32_t round, const RoundPlan& plan, double now_s) {
  record = {};
  record.round = round;
  record.first_step = plan.first_step;
  record.last_step = plan.last_step();
  record.start_s = now_s;
  routing_ = {};
  square_drift_ = ce_sum_ = 0;
  ce_steps_ = 0;
}

void RoundLog::Restore(std::vector<double> load, std::vector<Version> delivered) {
  if (load.size() != load_.size() || delivered.size() != delivered_.size()) {
    throw std::invalid_argument("the state to resume from: its counts are of another model");
  }
  load_ = std::move(load);
  delivered_ = std::move(delivered);
}

double RoundLog::Accept(const Offer& offer, std::span<const double> squared_moves, bool gradients) {
  ++record.arrived;
  for (const analysis::StepRecord& step : offer.steps) {
    recorder_.Record(step);
    if (std::isnan(step.ce)) continue;  // it has none
    ce_sum_ += step.ce;
    ++ce_steps_;
  }
  routing_.Add(offer.routing);
  for (const std::vector<std::int64_t>& layer : offer.routing.routed) {
    for (std::size_t e = 0; e < std::min(layer.size(), load_.size()); ++e) {
      load_[e] += static_cast<double>(layer[e]);
    }
  }
  const WireParts parts = PartsOf(offer, *table_);
  record.up_shared_bytes += parts.shared;
  record.up_expert_bytes += parts.experts;
  record.up_moment_bytes += parts.moments;
  if (gradients) return square_drift_ = kNotANumber;
  double shared = 0, experts = 0;
  for (std::size_t i = 0; i < offer.blocks.size(); ++i) {
    const bool expert = (*table_)[offer.blocks[i].id].kind == BlockKind::kExpert;
    (expert ? experts : shared) += squared_moves[i];
  }
  square_drift_ += shared;
  return std::sqrt(shared + experts);
}

void RoundLog::Publish(const WorldUpdate& update, const Allocation& allocation, double now_s) {
  record.end_s = now_s;
  record.alpha = update.alpha;
  record.mean_ce = ce_steps_ > 0 ? ce_sum_ / static_cast<double>(ce_steps_) : kNotANumber;
  double squares = 0;
  for (const double norm : update.update_norms) squares += norm * norm;
  record.update_norm = std::sqrt(squares);
  // Mean over nodes of ‖x_n − mean‖² = mean of ‖x_n − world‖² − ‖mean − world‖².
  record.spread = std::sqrt(
      std::max(0.0, square_drift_ / std::max(1, record.arrived) - update.shared_square_move));
  if (std::isnan(square_drift_)) record.spread = kNotANumber;
  for (std::size_t i = 0; i < delivered_.size(); ++i) {
    if (update.contributed[i]) delivered_[i] = record.round;
  }
  for (const auto& row : RoutingRows(record.round, routing_)) recorder_.Record(row);
  for (const auto& row :
       ExpertRows(record.round, {*table_, routing_, update, allocation, delivered_})) {
    recorder_.Record(row);
  }
}

}  // namespace spes::trainer
