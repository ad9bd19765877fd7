// Results that are looked at before they count: how large they are, what they do to the held-out
// loss, and what becomes of whoever sent one that is not believed. See trust.h.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "trainer/optim/adamw.h"
#include "trainer/protocol/coordinator.h"
#include "trainer/protocol/round_statistics.h"

namespace spes::trainer {

// [block of the offer]: ‖own − from‖² or ‖gradient‖²; of gradients only where they are looked at.
std::vector<double> Coordinator::Squares(const Offer& m, const World& from) const {
  if (!config_.update.gradients) return SquaredMoves(m, from);
  std::vector<double> squares;
  if (config_.trust.norm_bound == 0) return squares;
  for (const OfferedBlock& block : m.blocks) {
    squares.push_back(
        SquaredNorm(table_->dtype(), block.data->data(), (*table_)[block.id].buffer_elements));
  }
  return squares;
}

// Measured from the values that it was trained from: what the others have done since is not its
// own doing, and its steps are no more for it.
Evidence Coordinator::SizesOfLate(const Member& peer, const Offer& m) const {
  if (config_.trust.norm_bound == 0) return {};
  World from = published_.world;
  for (std::size_t i = 0; i < peer.trains_from.size(); ++i) {
    from.blocks[static_cast<std::size_t>(m.blocks[i].id)].data = peer.trains_from[i];
  }
  return SizesOf(m, Squares(m, from), Reach(m), *table_);
}

// A usable result of the round at hand, or a late one that counts in it and whose sizes are known.
// It counts at once, or when it has been looked at.
void Coordinator::Take(NodeId from, Offer m, const Evidence& late_sizes) {
  std::vector<double> squares;
  runtime_.Work([&] { squares = Squares(m, published_.world); });
  if (!config_.trust.on()) {
    member(from).contributed = order_.span.round;
    return Accept(from, m, squares);
  }
  Looked looked;
  looked.incarnation = member(from).incarnation;
  if (m.span.round != order_.span.round) {
    looked.evidence = late_sizes;
  } else if (config_.trust.norm_bound > 0) {
    looked.evidence = SizesOf(m, squares, Reach(m), *table_);
  }
  looked.offer = std::move(m);
  looked.squares = std::move(squares);
  looked_[from] = std::move(looked);
  if (config_.trust.held_out) return TryOut(from);
  Weigh(from);
}

// How far the offer's steps could move an element of each of its blocks: since the round that
// published the value they began with.
std::vector<double> Coordinator::Reach(const Offer& m) const {
  if (!config_.trust.step_size) return std::vector<double>(m.blocks.size(), 1.0);
  std::map<std::int32_t, double> since;  // by that round
  std::vector<double> reach;
  for (const OfferedBlock& block : m.blocks) {
    std::int32_t round = m.span.round - 1;
    while (round > 0 && !schedule_.IsDue(round, block.id)) --round;
    const auto [sum, is_new] = since.emplace(round, 1e-12);  // whoever moved without any is caught
    for (std::int64_t step = round > 0 ? schedule_.round(round).last_step() + 1 : 1;
         is_new && step <= m.span.last_step(); ++step) {
      sum->second += config_.trust.step_size(step);
    }
    reach.push_back(sum->second);
  }
  return reach;
}

// The coordinator evaluates one world after the other.
sim::Time Coordinator::HeldOutTime() {
  trials_end_ = std::max(trials_end_, runtime_.Now()) + config_.trust.held_out_time;
  return trials_end_ - runtime_.Now();
}

// What results are compared with; while the nodes train.
void Coordinator::TryPublished() {
  published_loss_.reset();
  if (!config_.trust.held_out) return;
  auto loss = std::make_shared<double>();
  runtime_.Compute(
      [loss, world = published_.world, f = config_.trust.held_out] { *loss = f(world); },
      HeldOutTime(),
      [this, loss, round = order_.span.round] {
        if (order_.span.round != round || closing_) return;
        published_loss_ = *loss;
        std::vector<NodeId> tried;
        for (const auto& [node, looked] : looked_) {
          if (looked.loss) tried.push_back(node);
        }
        for (const NodeId node : tried) Weigh(node);
        MaybeCloseRound();
      });
}

void Coordinator::TryOut(NodeId from) {
  Looked& looked = looked_.at(from);
  looked.trial = ++trials_;
  World world = published_.world;
  for (const OfferedBlock& block : looked.offer.blocks) {
    world.blocks[static_cast<std::size_t>(block.id)].data = block.data;
  }
  auto loss = std::make_shared<double>();
  runtime_.Compute(
      [loss, world = std::move(world), f = config_.trust.held_out] { *loss = f(world); },
      HeldOutTime(),
      [this, from, loss, trial = looked.trial] {
        const auto found = looked_.find(from);
        if (found == looked_.end() || found->second.trial != trial) return;  // too late
        found->second.loss = *loss;
        if (!published_loss_) return;
        Weigh(from);
        MaybeCloseRound();
      });
}

// All is known of it that can be.
void Coordinator::Weigh(NodeId from) {
  Looked& looked = looked_.at(from);
  if (looked.loss) {
    const double rise = *looked.loss - *published_loss_;
    // Nothing is worse than what has no loss, unless the published world has none either.
    if (std::isfinite(*published_loss_)) {
      looked.evidence.loss_rise =
          std::isfinite(rise) ? rise : std::numeric_limits<double>::infinity();
    }
  }
  looked.undecided = !trust_.Takes(from, looked.evidence);
  if (looked.undecided) return;
  AcceptLooked(from, looked_.extract(from).mapped());
}

void Coordinator::AcceptLooked(NodeId from, const Looked& looked) {
  Member& peer = member(from);
  // Whoever has begun anew since does not hold what it sent.
  if (peer.incarnation == looked.incarnation) peer.contributed = order_.span.round;
  Accept(from, looked.offer, looked.squares);
}

bool Coordinator::HasOffered(NodeId node) const {
  return settled_[static_cast<std::size_t>(node)] || looked_.contains(node);
}

int Coordinator::Undecided() const {
  return static_cast<int>(std::count_if(looked_.begin(), looked_.end(),
                                        [](const auto& each) { return each.second.undecided; }));
}

// In the order of the nodes, by all that has come.
void Coordinator::JudgeUndecided() {
  for (const auto& [node, fault] : trust_.Judge()) {
    const Looked looked = std::move(looked_.extract(node).mapped());
    if (fault.empty()) {
      AcceptLooked(node, looked);
      continue;
    }
    settled_[static_cast<std::size_t>(node)] = true;
    ++log_.record.rejected;
    distrusted_ = true;
    runtime_.Work([this, node = node] { reduction_->Exclude(node); });
    last_rejection_ = fmt::format("node {}: {}", node, fault);
    Event(node, "distrusted", fault);
    Member& peer = member(node);
    peer.held.Trained(allocation_.blocks(node));  // nothing of its own may remain
    if (peer.state != MemberState::kIdle) continue;
    const std::int32_t round = looked.offer.span.round;
    Send(node, Reject{RejectReason::kDistrusted, round, fault});
  }
}

// The round closes before these have been tried out: they are late.
void Coordinator::LeaveUntried() {
  for (auto& [node, looked] : std::exchange(looked_, {})) {
    const bool same = member(node).incarnation == looked.incarnation;
    ++log_.record.late;
    if (same) member(node).record.late = 1;
    Event(node, "late",
          fmt::format("result of round {}, not tried out in time", looked.offer.span.round));
    if (same && config_.late == LateRule::kNextRound) {
      looked.evidence.loss_rise = Evidence::kNone;  // it will be tried out in another world
      for_next_.emplace_back(node, std::move(looked.offer), looked.evidence);
    }
  }
}

void Coordinator::EndTrust() {
  for (const auto& [node, reason] : trust_.EndRound(order_.span.round)) Quarantine(node, reason);
}

// Nothing of it is taken any more, for as long as this run lasts; its blocks are orphans.
void Coordinator::Quarantine(NodeId node, const std::string& reason) {
  Member& peer = member(node);
  peer.standing.quarantine = reason;
  Event(node, "quarantine", reason);
  std::erase_if(for_next_, [node](const auto& each) { return std::get<0>(each) == node; });
  const bool there = peer.state == MemberState::kIdle;
  GiveUp(node, "quarantined");
  if (there) Send(node, Reject{RejectReason::kDistrusted, 0, reason});
  if (config_.on_quarantine) config_.on_quarantine(node, reason);
}

}  // namespace spes::trainer
