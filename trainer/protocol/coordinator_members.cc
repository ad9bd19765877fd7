// Who takes part: joining, being lost, being waited for, and what becomes of a lost node's blocks.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "trainer/protocol/coordinator.h"
#include "trainer/protocol/wire_size.h"

namespace spes::trainer {

namespace {
// For those whom a coordinator without patience knew before it began anew.
constexpr sim::Time kWaitAfterRestart = std::chrono::minutes(1);
constexpr std::size_t kEarlier = 16;  // of one node
}  // namespace

void Coordinator::On(NodeId from, const Join& m) {
  if (m.scenario_hash != config_.scenario_hash) {
    return Refuse(from, RejectReason::kScenario, 0,
                  fmt::format("its scenario {} is not the coordinator's {}", m.scenario_hash,
                              config_.scenario_hash));
  }
  if (m.run != 0 && m.run != config_.run) {
    return Refuse(from, RejectReason::kOtherRun, 0,
                  fmt::format("the coordinator {} round {} of another run",
                              committed_round_ == 0 ? "begins at" : "is at", committed_round_));
  }
  Member& peer = member(from);
  // Repeated, of what it is no more.
  if (std::ranges::find(peer.earlier, m.incarnation) != peer.earlier.end()) return;
  const bool known = peer.state != MemberState::kAbsent && peer.state != MemberState::kLost &&
                     peer.state != MemberState::kMissing;
  if (known && peer.incarnation == m.incarnation) return;  // repeated
  if (known) Event(from, "lost", "began anew");
  StopWaiting(peer);
  std::deque<std::uint64_t> earlier = std::move(peer.earlier);
  if (peer.incarnation != 0 && peer.incarnation != m.incarnation) {
    earlier.push_front(peer.incarnation);
  }
  if (earlier.size() > kEarlier) earlier.pop_back();
  NodeStanding standing = std::move(peer.standing);
  const std::int32_t counted = peer.counted;
  peer = {};
  peer.counted = counted;
  peer.result = m.round;
  peer.earlier = std::move(earlier);
  peer.standing = std::move(standing);
  std::erase_if(for_next_, [from](const auto& each) { return std::get<0>(each) == from; });
  peer.state = MemberState::kIdle;
  peer.incarnation = m.incarnation;
  // Who starts from the same model holds version 0 of everything; others need all values.
  const std::size_t blocks = published_.world.blocks.size();
  peer.held = m.run != 0 && m.held.size() == blocks
                  ? HeldBlocks(m.held, committed_round_)
                  : HeldBlocks(blocks, m.world_hash == initial_hash_ ? 0 : HeldBlocks::kNone);
  peer.trains = m.trains.empty() ? first_allocation_.blocks(from) : m.trains;
  Event(from, "join", m.run == 0 ? "" : fmt::format("with what it had after round {}", m.round));
  if (!begun_) {
    if (!deadline_timer_) ArmDeadline();
    // Whoever has been let in before was so when all were there, or known to be lost.
    if (resumed_ || m.run != 0) MissTheAbsent();
    if (!begun_) MaybeBegin();
    return;
  }
  // A latecomer takes part in the round at hand, unless it has been part of it before.
  if (closing_ || (reduction_ && HasOffered(from))) return;
  SendOrder(from, log_.record);
  if (peer.state == MemberState::kIdle) MaybeCloseRound();  // the round has nothing for it
}

// A run that is resumed after its beginning knows its peers: it had connections with them.
void Coordinator::MissTheAbsent() {
  for (NodeId node = 0; node < allocation_.nodes(); ++node) {
    if (member(node).state != MemberState::kAbsent) continue;
    Miss(node, "not back yet since the coordinator began anew",
         config_.patience > sim::Time{0} ? config_.patience : kWaitAfterRestart);
  }
}

// The first round begins once every peer has joined or is known to be lost, or at the deadline with
// those who are there. When all rounds are done nobody is waited for.
void Coordinator::MaybeBegin() {
  const auto count = [this](MemberState state) {
    return std::count_if(members_.begin(), members_.end(),
                         [state](const Member& each) { return each.state == state; });
  };
  if (count(MemberState::kIdle) == 0) return;
  if (count(MemberState::kAbsent) > 0 && !deadline_passed_ && !AllStepsDone()) return;
  begun_ = true;
  if (AllStepsDone()) return EndRun(log_.record);
  BeginRound(log_.record);
  GoOn();
}

void Coordinator::OnLost(NodeId node, const std::string& reason) {
  Member& peer = member(node);
  if (peer.state == MemberState::kMissing) return;
  const bool awaited = peer.state == MemberState::kAbsent || peer.state == MemberState::kIdle ||
                       peer.state == MemberState::kTraining;
  if (!awaited || config_.patience <= sim::Time{0}) return GiveUp(node, reason);
  Miss(node, reason, config_.patience);
}

void Coordinator::Miss(NodeId node, const std::string& reason, sim::Time patience) {
  Member& peer = member(node);
  peer.state = MemberState::kMissing;
  Event(node, "missing", reason);
  peer.patience = runtime_.After(patience, [this, node, reason] {
    member(node).patience.reset();
    GiveUp(node, reason);
  });
}

// From now on nobody waits for it.
void Coordinator::GiveUp(NodeId node, const std::string& reason) {
  Member& peer = member(node);
  if (peer.state == MemberState::kLost || peer.state == MemberState::kGone) return;
  StopWaiting(peer);
  peer.state = MemberState::kLost;
  peer.ordered = {};  // with the values that its result would have been read and measured from
  peer.trains_from.clear();
  Event(node, "lost", reason);
  if (!begun_) {
    MaybeBegin();
  } else {
    MaybeCloseRound();
    MaybeForgetDeadline();
  }
}

void Coordinator::StopWaiting(Member& peer) {
  if (peer.patience) runtime_.Cancel(*std::exchange(peer.patience, std::nullopt));
}

// The round's allocation with the blocks of which all trainers are lost given to others: each, in
// the table's order, to the live node that trains the fewest elements so far. They come back with
// their trainers.
Allocation Coordinator::WithoutTheLost() const {
  const auto nodes = static_cast<int>(members_.size());
  const auto lost = [this](int node) {
    const MemberState state = members_[static_cast<std::size_t>(node)].state;
    return state == MemberState::kLost || state == MemberState::kAbsent;
  };
  std::vector<std::int64_t> elements(members_.size(), 0);
  std::vector<int> live;
  for (int node = 0; node < nodes; ++node) {
    elements[static_cast<std::size_t>(node)] = configured_.TrainableElements(node, *table_);
    if (!lost(node)) live.push_back(node);
  }
  std::vector<std::vector<int>> trainers;
  for (BlockId id = 0; id < table_->size(); ++id) {
    trainers.push_back(configured_.trainers(id));
    if (live.empty() || !std::all_of(trainers.back().begin(), trainers.back().end(), lost))
      continue;
    const int taker = *std::min_element(live.begin(), live.end(), [&elements](int a, int b) {
      return elements[static_cast<std::size_t>(a)] < elements[static_cast<std::size_t>(b)];
    });
    elements[static_cast<std::size_t>(taker)] += (*table_)[id].elements;
    trainers.back() = {taker};
  }
  return {nodes, std::move(trainers)};
}

// Events for the blocks that nodes have begun to train for lost ones, or have given back.
void Coordinator::TellHandedOver() {
  std::map<NodeId, std::vector<BlockId>> now;
  for (BlockId id = 0; id < table_->size(); ++id) {
    if (allocation_.trainers(id) == configured_.trainers(id)) continue;
    for (const int node : allocation_.trainers(id)) now[node].push_back(id);
  }
  const auto names = [this](const std::vector<BlockId>& ids) {
    constexpr std::size_t kMost = 8;
    std::string text;
    for (std::size_t i = 0; i < std::min(ids.size(), kMost); ++i) {
      const BlockSpec& spec = (*table_)[ids[i]];
      if (i > 0) text += ", ";
      text += spec.kind == BlockKind::kExpert
                  ? fmt::format("layer {} expert {}", spec.layer, spec.expert)
                  : spec.parts.front().name;
    }
    return ids.size() > kMost ? text + fmt::format(" and {} more", ids.size() - kMost) : text;
  };
  const auto in_one = [](const auto& one, const auto& other, NodeId node) {
    std::vector<BlockId> ids;
    const auto mine = one.find(node), theirs = other.find(node);
    if (mine == one.end()) return ids;
    if (theirs == other.end()) return mine->second;
    std::set_difference(mine->second.begin(), mine->second.end(), theirs->second.begin(),
                        theirs->second.end(), std::back_inserter(ids));
    return ids;
  };
  for (NodeId node = 0; node < allocation_.nodes(); ++node) {
    const std::vector<BlockId> taken = in_one(now, handed_over_, node);
    const std::vector<BlockId> left = in_one(handed_over_, now, node);
    if (!taken.empty()) Event(node, "handed over", "it trains for lost nodes: " + names(taken));
    if (!left.empty()) Event(node, "given back", "it trains no more: " + names(left));
  }
  handed_over_ = std::move(now);
}

// Once, however often it was given the round's order.
void Coordinator::CountMember(NodeId node) {
  if (counted_[static_cast<std::size_t>(node)]) return;
  counted_[static_cast<std::size_t>(node)] = true;
  ++log_.record.members;
}

CoordinatorPhase Coordinator::phase() const {
  if (!begun_) return CoordinatorPhase::kWaiting;
  if (AllStepsDone()) return CoordinatorPhase::kFinished;
  return closing_ ? CoordinatorPhase::kReducing : CoordinatorPhase::kTraining;
}

std::vector<MemberStatus> Coordinator::Members() const {
  std::vector<MemberStatus> all;
  for (const Member& each : members_) {
    const std::string_view state = each.standing.quarantine.empty()
                                       ? kMemberStates[static_cast<std::size_t>(each.state)]
                                       : std::rbegin(kMemberStates)[0];
    all.push_back({state, each.contributed});
  }
  return all;
}

bool Coordinator::finished() const {
  return begun_ && AllStepsDone() &&
         std::all_of(members_.begin(), members_.end(), [](const Member& each) {
           return each.state == MemberState::kGone || each.state == MemberState::kLost ||
                  each.state == MemberState::kAbsent;
         });
}

}  // namespace spes::trainer
