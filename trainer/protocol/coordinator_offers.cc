// The results of a round as they come in: what is refused, what is late, what counts, and when the
// round is over.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "trainer/protocol/coordinator.h"
#include "trainer/protocol/offer_check.h"
#include "trainer/protocol/wire_size.h"

namespace spes::trainer {

namespace {
constexpr int kMaxDamagedUploads = 3;  // per node and round
}

void Coordinator::On(NodeId from, Offer m) {
  Member& peer = member(from);
  const std::int32_t awaited = peer.ordered.span.round;
  const bool is_awaited = peer.state == MemberState::kTraining && m.span.round == awaited;
  // What is not of this model has no size that could be counted.
  const std::int64_t bytes = !IsOfModel(m, *table_) ? kFrameBytes
                             : is_awaited           ? config_.charge(from, m)
                                                    : WireBytes(m, *table_);
  up_so_far_ += bytes;
  log_.record.up_bytes += bytes;
  if (!is_awaited) {
    // A repeated one must not be refused: its peer would take that for the fate of the first.
    if (m.span.round <= awaited) return;
    return Refuse(from, RejectReason::kUnexpected, m.span.round,
                  fmt::format("no result of round {} is awaited from it", m.span.round));
  }
  peer.up_bytes += bytes;
  std::optional<OfferFault> fault;
  runtime_.Work([&] {
    fault = DecodeOffer(config_.offered, peer.ordered, *table_, m,
                        config_.decode_memory ? config_.decode_memory() : Allocate());
    if (!fault) fault = CheckOffer(m, peer.ordered, config_.tokens_per_step, *table_);
  });
  const bool late = closing_ || !reduction_ || m.span.round != order_.span.round;
  if (fault) {
    Refuse(from, fault->reason, m.span.round, fault->detail);
    const bool again = fault->reason == RejectReason::kCorrupt && !late;
    if (again && ++peer.damaged < kMaxDamagedUploads) return;
    if (!late) last_rejection_ = fmt::format("node {}: {}", from, fault->detail);
    if (config_.trust.on()) trust_.Refuse(from, fault->detail);
  }
  peer.standing.reset = fault && fault->reason == RejectReason::kNotFinite;
  peer.standing.steps_done += peer.ordered.span.steps;

  peer.state = MemberState::kIdle;
  peer.arrived = runtime_.Now();
  peer.result = m.span.round;
  // After a result that was not finite its other blocks may not be either.
  peer.held.Trained(fault ? peer.trains : peer.ordered.blocks);
  peer.record = {};
  peer.record.round = m.span.round;
  peer.record.node = from;
  peer.record.start_s = m.start_s;
  peer.record.compute_s = m.compute_s;
  peer.record.up_bytes = peer.up_bytes;

  if (late) return OnLate(from, m, !fault);
  if (fault) {
    settled_[static_cast<std::size_t>(from)] = true;
    ++log_.record.rejected;
    runtime_.Work([&] { reduction_->Exclude(from); });
  } else {
    Take(from, std::move(m));
  }
  MaybeCloseRound();
}

// Its round went on without it.
void Coordinator::OnLate(NodeId from, const Offer& m, bool usable) {
  ++log_.record.late;
  member(from).record.late = 1;
  Event(from, "late", fmt::format("result of round {}", m.span.round));
  const bool counts = config_.late == LateRule::kNextRound && usable;
  const bool now = counts && reduction_ && !closing_ && !HasOffered(from);
  Evidence sizes;
  if (now || (counts && closing_)) {
    runtime_.Work([&] { sizes = SizesOfLate(member(from), m); });
  }
  if (closing_) {  // the next round begins in a moment
    if (counts) for_next_.emplace_back(from, m, sizes);
    return;
  }
  if (!now) return SendOrder(from, log_.record);
  Take(from, m, sizes);
  MaybeCloseRound();
}

// A result that counts in the round at hand. `squares`: see RoundLog::Accept.
void Coordinator::Accept(NodeId from, const Offer& m, std::span<const double> squares) {
  Member& peer = member(from);
  CountMember(from);  // a late result has had no order of this round
  settled_[static_cast<std::size_t>(from)] = true;
  peer.counted = m.span.round;
  peer.record.arrived = 1;
  peer.record.drift = log_.Accept(m, squares, config_.update.gradients.has_value());
  std::vector<NodeBlock> blocks;
  for (const OfferedBlock& block : m.blocks) {
    blocks.push_back({block.id, block.data, block.moments});
    if (!IsPlain(config_.offered)) decoded_bytes_ += table_->Bytes(block.id);
  }
  const double late = static_cast<double>(order_.span.round - m.span.round);
  runtime_.Work([&] {
    reduction_->Add(from, std::move(blocks), static_cast<double>(m.tokens),
                    std::pow(1 + late, -config_.staleness_power));
  });
}

// Whether somebody who is not here, and whose result is not settled, would be let in.
bool Coordinator::SomeoneMayCome() const {
  for (NodeId node = 0; node < allocation_.nodes(); ++node) {
    const Member& each = members_[static_cast<std::size_t>(node)];
    const bool away = each.state == MemberState::kLost || each.state == MemberState::kAbsent;
    if (away && each.standing.quarantine.empty() && !HasOffered(node)) return true;
  }
  return false;
}

// A round that has no usable result and can get none from whoever is there waits for those who are
// not: `patience` once more where it holds somebody up or something was refused, without end where
// everybody is away.
bool Coordinator::AwaitsWhoMayCome() {
  if (config_.patience <= sim::Time{0} || !SomeoneMayCome()) return false;
  const bool holds_up = std::any_of(members_.begin(), members_.end(), [](const Member& each) {
    return each.state == MemberState::kIdle;
  });
  if (!holds_up && last_rejection_.empty()) return true;
  if (!std::exchange(awaited_, true)) {
    await_timer_ = runtime_.After(config_.patience, [this] {
      await_timer_.reset();
      MaybeCloseRound();
    });
  }
  return await_timer_.has_value();
}

// The round's rule: everyone who is alive, or a quorum, or whoever has arrived by the deadline.
void Coordinator::MaybeCloseRound() {
  if (!reduction_ || closing_) return;
  const int undecided = Undecided();
  bool everyone = undecided == static_cast<int>(looked_.size());
  for (NodeId node = 0; node < allocation_.nodes(); ++node) {
    const MemberState state = member(node).state;
    if (state == MemberState::kTraining || (state == MemberState::kMissing && !HasOffered(node))) {
      everyone = false;
    }
  }
  const auto over = [&](int arrived) {
    const bool enough = config_.quorum > 0 && arrived >= config_.quorum;
    const bool overdue = deadline_passed_ && arrived > 0;
    return everyone || enough || overdue;
  };
  if (!over(log_.record.arrived + undecided)) return;
  JudgeUndecided();
  if (!over(log_.record.arrived)) return;
  if (log_.record.arrived == 0) {
    if (!distrusted_ && AwaitsWhoMayCome()) return;
    if (distrusted_) {
      // One bad round of few nodes is no reason to end the run: its results count for nothing.
      Event(kCoordinator, "empty",
            fmt::format("round {}: no result is trusted, the world stays as it is",
                        order_.span.round));
      return CloseRound();
    }
    throw std::runtime_error(
        fmt::format("round {}: no upload can be used; {}", order_.span.round,
                    last_rejection_.empty() ? std::string("no peer is left") : last_rejection_));
  }
  CloseRound();
}

}  // namespace spes::trainer
