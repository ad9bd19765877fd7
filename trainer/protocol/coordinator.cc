// A round of SPES reads from top to bottom: peers join (Join), all are ordered to train H steps
// (BeginRound), their results come in (Offer, CheckOffer, Accept), the round closes (CloseRound:
// reduce and merge), the new world is published (Publish) and everyone is sent what it lacks
// (SendOrder). Source: arXiv 2602.11543.
#include "trainer/protocol/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "trainer/protocol/round_statistics.h"
#include "trainer/protocol/wire_size.h"

namespace spes::trainer {

Coordinator::Coordinator(CoordinatorConfig config, Allocation allocation, World initial,
                         Runtime& runtime, analysis::Recorder& recorder, OnPublished on_published,
                         std::optional<CoordinatorState> resume)
    : config_(std::move(config)),
      first_allocation_(std::move(allocation)),
      configured_(first_allocation_),
      allocation_(first_allocation_),
      table_(initial.table),
      schedule_(config_.schedule, *table_),
      published_{std::move(initial), {}, {}, NeedsBase(config_.update.codec)},
      updater_(config_.update, table_),
      initial_hash_(resume ? std::string() : WorldHash(published_.world)),
      runtime_(runtime),
      recorder_(recorder),
      on_published_(std::move(on_published)),
      members_(static_cast<std::size_t>(allocation_.nodes())),
      log_(table_, recorder),
      trust_(config_.trust) {
  if (config_.trust.held_out && config_.update.gradients) {
    throw std::invalid_argument("trust: gradients are no values that could be tried out");
  }
  published_.codes.resize(published_.world.blocks.size());
  published_.moments.resize(published_.world.blocks.size());
  if (!config_.charge) {
    config_.charge = [this](NodeId, const Message& message) { return WireBytes(message, *table_); };
  }
  if (resume) {
    Resume(*std::move(resume));
  } else if (config_.journal) {
    config_.journal(StateNow());
  }
  on_published_({committed_round_, committed_step_, NowSeconds(), up_so_far_ + down_so_far_.all,
                 published_.world});
}

void Coordinator::OnMessage(NodeId from, const Message& message) {
  if (from < 0 || from >= allocation_.nodes()) {
    return Refuse(
        from, RejectReason::kScenario, 0,
        fmt::format("there is no node {} in a run of {} nodes", from, allocation_.nodes()));
  }
  if (!member(from).standing.quarantine.empty()) {
    if (std::holds_alternative<Join>(message) || std::holds_alternative<Offer>(message)) {
      Refuse(from, RejectReason::kDistrusted, 0, member(from).standing.quarantine);
    }
    return;
  }
  if (const auto* join = std::get_if<Join>(&message)) return On(from, *join);
  const MemberState state = member(from).state;
  if (state == MemberState::kAbsent || state == MemberState::kLost) {
    if (!std::holds_alternative<Offer>(message)) return;
    return Refuse(from, RejectReason::kNotMember, RoundOf(message), "it was given up");
  }
  if (const auto* offer = std::get_if<Offer>(&message)) return On(from, *offer);
  if (const auto* applied = std::get_if<Applied>(&message)) return On(from, *applied);
  if (const auto* leave = std::get_if<Leave>(&message)) OnLost(from, "left: " + leave->reason);
}

// Ordering.

// Opens the next round and sends its order to everyone who waits for one; what that takes is
// counted in `row`. GoOn follows.
void Coordinator::BeginRound(analysis::RoundRecord& row) {
  const std::int32_t round = committed_round_ + 1;
  const RoundPlan& plan = schedule_.round(round);
  if (MayChange(config_.allocation, round)) {
    configured_ = AllocationOfRound(config_.allocation, *table_, allocation_.nodes(),
                                    config_.capacities, round, log_.load());
  }
  allocation_ = config_.orphans == OrphanRule::kHandedOver ? WithoutTheLost() : configured_;
  TellHandedOver();
  order_ = {};
  order_.span = {round, plan.first_step, plan.steps};
  order_.ahead = plan.ahead;
  const bool hand_over = config_.allocation.moments == RotatedMoments::kHandedOver &&
                         round < schedule_.rounds() && MayChange(config_.allocation, round + 1);
  order_.moments = config_.moments == MomentsRule::kAveraged ? MomentsSent::kAll
                   : hand_over                               ? MomentsSent::kExperts
                                                             : MomentsSent::kNone;
  std::vector<int> nodes(members_.size());
  std::iota(nodes.begin(), nodes.end(), 0);
  reduction_ = std::make_unique<Reduction>(config_.reduction, published_.world, std::move(nodes));
  settled_.assign(members_.size(), false);
  counted_.assign(members_.size(), false);
  closing_ = false;
  decoded_bytes_ = 0;
  last_rejection_.clear();
  distrusted_ = false;
  awaited_ = false;
  log_.Begin(round, plan, NowSeconds());
  TryPublished();
  SendOrders(row);
  ArmDeadline();
}

// The round has begun: with what was late for the one before, perhaps with nothing else.
void Coordinator::GoOn() {
  if (!reduction_) return;  // the run is over
  for (auto& [from, offer, sizes] : std::exchange(for_next_, {})) {
    Take(from, std::move(offer), sizes);
  }
  MaybeCloseRound();
}

void Coordinator::ArmDeadline() {
  if (deadline_timer_) runtime_.Cancel(*std::exchange(deadline_timer_, std::nullopt));
  deadline_passed_ = false;
  if (config_.deadline) {
    deadline_timer_ = runtime_.After(*config_.deadline, [this] { OnDeadline(); });
  }
}

void Coordinator::OnDeadline() {
  deadline_timer_.reset();
  deadline_passed_ = true;
  if (reduction_) {
    MaybeCloseRound();
  } else if (!begun_) {
    MaybeBegin();
  } else {  // all is over
    for (NodeId node = 0; node < allocation_.nodes(); ++node) {
      if (member(node).state == MemberState::kAbsent) continue;
      GiveUp(node, "does not say that it knows that the run is over");
    }
  }
}

void Coordinator::SendOrders(analysis::RoundRecord& row) {
  for (NodeId node = 0; node < allocation_.nodes(); ++node) {
    if (member(node).state != MemberState::kIdle) continue;
    const bool has_result = std::ranges::any_of(
        for_next_, [node](const auto& each) { return std::get<0>(each) == node; });
    if (!reduction_ || !(has_result || HasOffered(node))) SendOrder(node, row);
  }
}

// The order of the round at hand as it is for one peer.
RoundOrder Coordinator::OrderFor(NodeId to, Member& peer) {
  RoundOrder order = order_;
  const std::vector<BlockId>& own = allocation_.blocks(to);
  if (peer.trains != own) {
    // What it has trained and does not offer is a value of its own.
    std::vector<BlockId> left;
    std::set_difference(peer.trains.begin(), peer.trains.end(), own.begin(), own.end(),
                        std::back_inserter(left));
    std::erase_if(left, [&peer](BlockId id) {
      return std::binary_search(peer.ordered.blocks.begin(), peer.ordered.blocks.end(), id);
    });
    peer.held.Trained(left);
    order.trains = peer.trains = own;
  }
  peer.ordered = {order.span, order.moments, {}, {}};
  peer.trains_from.clear();
  const bool measured_late = config_.trust.norm_bound > 0 && config_.late == LateRule::kNextRound &&
                             !config_.update.gradients;
  for (const BlockId id : own) {
    if (!schedule_.IsDue(order.span.round, id)) continue;
    peer.ordered.blocks.push_back(id);
    const SharedBuffer& value = published_.world.blocks[static_cast<std::size_t>(id)].data;
    if (NeedsBase(config_.offered)) peer.ordered.base.push_back(value);
    if (measured_late) peer.trains_from.push_back(value);
  }
  if (peer.ordered.blocks != own) order.blocks = peer.ordered.blocks;
  return order;
}

// To a peer that waits: what was published and what it lacks of it, and the order of the round at
// hand; or word that the run is over. The last world stays with the coordinator. A peer for which
// the round has nothing to train, since another has its blocks, goes on waiting. What is sent is
// counted in `row`.
void Coordinator::SendOrder(NodeId to, analysis::RoundRecord& row) {
  Member& peer = member(to);
  const Counted before = down_so_far_;
  const bool counted = peer.result > 0 && peer.counted == peer.result;
  if (AllStepsDone()) {
    peer.state = MemberState::kReleased;
    Send(to, Update{committed_round_, WaitSeconds(peer), false, {}, std::nullopt, counted});
    ArmEnd();
  } else if (allocation_.blocks(to).empty()) {
    return;
  } else {
    peer.state = MemberState::kTraining;
    peer.damaged = 0;
    peer.up_bytes = 0;
    CountMember(to);
    RoundOrder order = OrderFor(to, peer);
    auto blocks = peer.held.TakeMissing(published_, allocation_.blocks(to));
    if (peer.admitted) {
      Send(to, Update{committed_round_, WaitSeconds(peer), peer.standing.reset, std::move(blocks),
                      std::move(order), counted});
    } else {
      peer.admitted = true;
      Send(to, Admit{std::move(blocks), std::move(order), config_.run, peer.standing.reset,
                     peer.standing.steps_done, peer.incarnation, counted});
    }
  }
  CountDown(before, row);
  if (peer.record.round == 0) return;  // it has no result yet
  peer.record.wait_s = WaitSeconds(peer);
  peer.record.down_bytes = down_so_far_.all - before.all;
  peer.unconfirmed[committed_round_] = std::exchange(peer.record, {});
}

// Reducing and publishing.

void Coordinator::CloseRound() {
  closing_ = true;
  for (auto* timer : {&deadline_timer_, &await_timer_}) {
    if (*timer) runtime_.Cancel(*std::exchange(*timer, std::nullopt));
  }
  LeaveUntried();
  EndTrust();
  // On another thread: it reads what does not change while the round is closing.
  //   S = Σ w_n S_n / Σ w_n; expert e = the mean over its trainers, its owner's copy;
  //   then w_i += α_t · mean_j(w_j − w_i).
  auto update = std::make_shared<WorldUpdate>();
  // Merging takes all experts of a layer as they are now.
  const double alpha =
      log_.record.arrived > 0 && schedule_.AllExpertsDue(order_.span.round)
          ? MergeAlphaOfRound(config_.update.merge, committed_step_, order_.span.last_step())
          : 0;
  std::int64_t coded = decoded_bytes_;
  if (updater_.codes()) {
    for (BlockId id = 0; id < table_->size(); ++id) {
      if (schedule_.IsDue(order_.span.round, id)) coded += table_->Bytes(id);
    }
  }
  auto state =
      std::make_shared<CoordinatorState>(config_.journal ? StateNow() : CoordinatorState());
  runtime_.Compute(
      [this, update, alpha, state] {
        for (NodeId node = 0; node < allocation_.nodes(); ++node) {
          if (!settled_[static_cast<std::size_t>(node)]) reduction_->Exclude(node);
        }
        *update = updater_.Update(published_.world, reduction_->Finish(order_.span.round),
                                  order_.span.round, order_.span.last_step(), alpha);
        if (!config_.journal) return;
        AddUpdate(*update, *state);
        config_.journal(*state);
      },
      CodingTime(coded), [this, update] { Publish(*update); });
}

void Coordinator::Publish(const WorldUpdate& update) {
  for (std::size_t i = 0; i < update.codes.size(); ++i) {
    if (update.world.blocks[i].version != order_.span.round) continue;  // as it was
    published_.codes[i] = {published_.world.blocks[i].version, update.codes[i]};
    published_.moments[i] = update.moments[i];
  }
  published_.world = update.world;
  committed_round_ = order_.span.round;
  committed_step_ = order_.span.last_step();
  reduction_.reset();
  closing_ = false;
  for (std::size_t i = 0; i < update.source.size(); ++i) {
    // Whose copy was adopted as it is holds the published value already, unless it began anew
    // since.
    const int source = update.source[i];
    if (source >= 0 && member(source).contributed == committed_round_) {
      member(source).held.Adopted(static_cast<BlockId>(i), committed_round_);
    }
  }
  log_.Publish(update, allocation_, NowSeconds());
  if (update.alpha > 0) Event(kCoordinator, "merge", fmt::format("alpha {:.6g}", update.alpha));
  const PublishedRound published{committed_round_, committed_step_, NowSeconds(),
                                 up_so_far_ + down_so_far_.all, published_.world};

  // Its row is in the log before anything that may fail: the orders that go out with it count in
  // it, and whatever comes of them does not.
  analysis::RoundRecord finished = log_.record;
  if (AllStepsDone()) {
    EndRun(finished);
  } else {
    BeginRound(finished);
  }
  recorder_.Record(finished);
  recorder_.Flush();
  on_published_(published);
  GoOn();
}

// Afterwards.

void Coordinator::On(NodeId from, const Applied& m) {
  Member& peer = member(from);
  up_so_far_ += WireBytes(m, *table_);
  if (auto row = peer.unconfirmed.extract(m.version)) {
    row.mapped().up_s = m.up_s;
    row.mapped().down_s = m.down_s;
    recorder_.Record(row.mapped());
  }
  if (peer.state == MemberState::kReleased && m.version == committed_round_) {
    peer.state = MemberState::kGone;
    MaybeForgetDeadline();
  }
}

// Everyone is told that the run is over, and waited for until it says that it knows.
void Coordinator::EndRun(analysis::RoundRecord& row) {
  SendOrders(row);
  ArmEnd();
}

void Coordinator::ArmEnd() {
  const sim::Time wait = config_.deadline.value_or(config_.patience);
  if (wait <= sim::Time{0} || deadline_timer_ || finished()) return;
  deadline_timer_ = runtime_.After(wait, [this] { OnDeadline(); });
}

void Coordinator::MaybeForgetDeadline() {
  if (deadline_timer_ && finished()) runtime_.Cancel(*std::exchange(deadline_timer_, std::nullopt));
}

// Small things.

void Coordinator::Refuse(NodeId to, RejectReason reason, std::int32_t round, std::string detail) {
  Event(to, "reject", fmt::format("{}: {}", Name(reason), detail));
  Send(to, Reject{reason, round, std::move(detail)});
}

void Coordinator::Send(NodeId to, Message message) {
  const std::int64_t bytes = config_.charge(to, message);
  down_so_far_.all += bytes;
  down_so_far_.parts += PartsOf(message, *table_);
  runtime_.Send(to, std::move(message), bytes);
}

// To a round's record: what was sent since.
void Coordinator::CountDown(const Counted& before, analysis::RoundRecord& record) {
  const WireParts parts = down_so_far_.parts - before.parts;
  record.down_bytes += down_so_far_.all - before.all;
  record.down_shared_bytes += parts.shared;
  record.down_expert_bytes += parts.experts;
  record.down_moment_bytes += parts.moments;
}

sim::Time Coordinator::CodingTime(std::int64_t bytes) const {
  return config_.coding_time && bytes > 0 ? config_.coding_time(bytes) : sim::Time{0};
}

void Coordinator::Event(NodeId node, std::string kind, std::string detail) {
  recorder_.Record(analysis::EventRecord{NowSeconds(), node, std::move(kind), std::move(detail)});
}

double Coordinator::NowSeconds() const { return sim::ToSeconds(runtime_.Now()); }

double Coordinator::WaitSeconds(const Member& peer) const {
  return sim::ToSeconds(runtime_.Now() - peer.arrived);
}

}  // namespace spes::trainer
