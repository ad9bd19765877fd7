// A round of SPES reads from top to bottom: peers join (Join), all are ordered to train H steps
// (BeginRound), their results come in (Offer, CheckOffer, Accept), the round closes (CloseRound:
// reduce and merge), the new world is published (Publish) and everyone is sent what it lacks
// (SendOrder). Source: arXiv 2602.11543.
#include "trainer/protocol/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "trainer/protocol/offer_check.h"
#include "trainer/protocol/round_statistics.h"
#include "trainer/protocol/wire_size.h"

namespace spes::trainer {

namespace {
constexpr int kMaxDamagedUploads = 3;  // per node and round
}

Coordinator::Coordinator(CoordinatorConfig config, Allocation allocation, World initial,
                         Runtime& runtime, analysis::Recorder& recorder, OnPublished on_published)
    : config_(std::move(config)),
      allocation_(std::move(allocation)),
      table_(initial.table),
      world_(std::move(initial)),
      initial_hash_(WorldHash(world_)),
      runtime_(runtime),
      recorder_(recorder),
      on_published_(std::move(on_published)),
      members_(static_cast<std::size_t>(allocation_.nodes())),
      delivered_(world_.blocks.size(), 0) {
  if (!config_.charge) {
    config_.charge = [this](NodeId, const Message& message) { return WireBytes(message, *table_); };
  }
  for (BlockId id = 0; id < table_->size(); ++id)
    owners_.push_back(allocation_.trainers(id).front());
  on_published_({0, 0, sim::ToSeconds(runtime_.Now()), 0, world_});
}

void Coordinator::OnMessage(NodeId from, const Message& message) {
  if (from < 0 || from >= allocation_.nodes()) {
    return Refuse(
        from, RejectReason::kScenario, 0,
        fmt::format("there is no node {} in a run of {} nodes", from, allocation_.nodes()));
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

// Joining.

void Coordinator::On(NodeId from, const Join& m) {
  if (m.scenario_hash != config_.scenario_hash) {
    return Refuse(from, RejectReason::kScenario, 0,
                  fmt::format("its scenario {} is not the coordinator's {}", m.scenario_hash,
                              config_.scenario_hash));
  }
  Member& peer = member(from);
  const bool known = peer.state != MemberState::kAbsent && peer.state != MemberState::kLost;
  if (known && peer.incarnation == m.incarnation) return;  // repeated
  if (known) OnLost(from, "began anew");
  peer = {};
  peer.state = MemberState::kIdle;
  peer.incarnation = m.incarnation;
  // Who starts from the same model holds version 0 of everything; others need all values.
  peer.held.assign(world_.blocks.size(), m.world_hash == initial_hash_ ? 0 : kNone);
  Event(from, "join", "");
  if (committed_round_ == 0 && !reduction_) {
    if (!deadline_timer_) ArmDeadline();
    return MaybeBegin();
  }
  // A latecomer takes part in the round at hand, unless it has been part of it before.
  if (closing_ || (reduction_ && settled_[static_cast<std::size_t>(from)])) return;
  const std::int64_t before = bytes_so_far_;
  SendOrder(from);
  record_.down_bytes += bytes_so_far_ - before;
}

// The first round begins once every peer has joined or is known to be lost, or at the deadline with
// those who are there.
void Coordinator::MaybeBegin() {
  const auto count = [this](MemberState state) {
    return std::count_if(members_.begin(), members_.end(),
                         [state](const Member& each) { return each.state == state; });
  };
  if (count(MemberState::kIdle) == 0) return;
  if (count(MemberState::kAbsent) > 0 && !deadline_passed_) return;
  BeginRound();
  record_.down_bytes += bytes_so_far_;
}

// Ordering.

std::int32_t Coordinator::total_rounds() const {
  return static_cast<std::int32_t>((config_.total_steps + config_.every - 1) / config_.every);
}

// Opens the next round and sends its order to everyone who waits for one.
void Coordinator::BeginRound() {
  order_.round = committed_round_ + 1;
  order_.first_step = committed_step_ + 1;
  order_.steps =
      static_cast<std::int32_t>(std::min(config_.every, config_.total_steps - committed_step_));
  std::vector<int> nodes(members_.size());
  std::iota(nodes.begin(), nodes.end(), 0);
  const ReductionRule rule{config_.weigh_by_tokens ? ReductionKind::kTokenMean
                                                   : ReductionKind::kMean};
  reduction_ = std::make_unique<Reduction>(ReductionConfig{rule, rule}, allocation_, world_,
                                           std::move(nodes));
  settled_.assign(members_.size(), false);
  closing_ = false;
  ce_sum_ = 0;
  ce_steps_ = 0;
  routing_ = {};
  last_rejection_.clear();
  record_ = {};
  record_.round = order_.round;
  record_.first_step = order_.first_step;
  record_.last_step = order_.first_step + order_.steps - 1;
  record_.start_s = NowSeconds();
  SendOrders();
  ArmDeadline();
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
  } else if (committed_round_ == 0) {
    MaybeBegin();
  }
}

void Coordinator::SendOrders() {
  for (NodeId node = 0; node < allocation_.nodes(); ++node) {
    if (member(node).state == MemberState::kIdle) SendOrder(node);
  }
}

// To a peer that waits: what was published and what it lacks of it, and the order of the round at
// hand; or word that the run is over. The last world stays with the coordinator.
void Coordinator::SendOrder(NodeId to) {
  Member& peer = member(to);
  const std::int64_t before = bytes_so_far_;
  if (AllStepsDone()) {
    peer.state = MemberState::kReleased;
    Send(to, Update{committed_round_, WaitSeconds(peer), false, {}, std::nullopt});
  } else {
    peer.state = MemberState::kTraining;
    peer.round = order_.round;
    peer.damaged = 0;
    peer.up_bytes = 0;
    ++record_.members;
    if (peer.admitted) {
      Send(to, Update{committed_round_, WaitSeconds(peer), std::exchange(peer.reset, false),
                      TakeMissing(peer), order_});
    } else {
      peer.admitted = true;
      Send(to, Admit{TakeMissing(peer), order_});
    }
  }
  if (peer.record.round == 0) return;  // it has no result yet
  peer.record.wait_s = WaitSeconds(peer);
  peer.record.down_bytes = bytes_so_far_ - before;
  peer.unconfirmed[committed_round_] = std::exchange(peer.record, {});
}

// The blocks whose published value the peer does not hold; from now on it does.
std::vector<SentBlock> Coordinator::TakeMissing(Member& peer) {
  std::vector<SentBlock> blocks;
  for (BlockId id = 0; id < table_->size(); ++id) {
    const PublishedBlock& published = world_.blocks[static_cast<std::size_t>(id)];
    Version& held = peer.held[static_cast<std::size_t>(id)];
    if (held == published.version) continue;
    blocks.push_back({id, published.version, published.data});
    held = published.version;
  }
  return blocks;
}

// Collecting.

void Coordinator::On(NodeId from, const Offer& m) {
  Member& peer = member(from);
  const auto fault = CheckOffer(m, order_, allocation_.blocks(from), *table_);
  // What is not of this model has no size that could be counted.
  const bool sized = !fault || fault->reason != RejectReason::kUnexpected;
  const std::int64_t bytes = sized ? config_.charge(from, m) : kFrameBytes;
  bytes_so_far_ += bytes;
  record_.up_bytes += bytes;
  if (peer.state != MemberState::kTraining || m.order.round != peer.round) {
    return Refuse(from, RejectReason::kUnexpected, m.order.round,
                  fmt::format("no result of round {} is awaited from it", m.order.round));
  }
  peer.up_bytes += bytes;
  const bool late = closing_ || !reduction_ || m.order.round != order_.round;
  if (fault) {
    Refuse(from, fault->reason, m.order.round, fault->detail);
    const bool again = fault->reason == RejectReason::kCorrupt && !late;
    if (again && ++peer.damaged < kMaxDamagedUploads) return;
    peer.reset = fault->reason == RejectReason::kNotFinite;
    last_rejection_ = fmt::format("node {}: {}", from, fault->detail);
  }

  peer.state = MemberState::kIdle;
  peer.arrived = runtime_.Now();
  for (const BlockId id : allocation_.blocks(from)) peer.held[static_cast<std::size_t>(id)] = kNone;
  peer.record = {};
  peer.record.round = m.order.round;
  peer.record.node = from;
  peer.record.start_s = m.start_s;
  peer.record.compute_s = m.compute_s;
  peer.record.up_bytes = peer.up_bytes;

  if (late) {  // its round went on without it
    ++record_.late;
    peer.record.late = 1;
    Event(from, "late", fmt::format("result of round {}", m.order.round));
    if (closing_) return;  // the next round begins in a moment
    const std::int64_t before = bytes_so_far_;
    SendOrder(from);
    record_.down_bytes += bytes_so_far_ - before;
    return;
  }
  settled_[static_cast<std::size_t>(from)] = true;
  if (fault) {
    ++record_.rejected;
    reduction_->Exclude(from);
  } else {
    Accept(from, m);
  }
  MaybeCloseRound();
}

void Coordinator::Accept(NodeId from, const Offer& m) {
  ++record_.arrived;
  member(from).record.arrived = 1;
  member(from).contributed = m.order.round;
  for (const analysis::StepRecord& step : m.steps) {
    recorder_.Record(step);
    ce_sum_ += step.ce;
    ++ce_steps_;
  }
  routing_.Add(m.routing);
  std::vector<NodeBlock> blocks;
  for (const OfferedBlock& block : m.blocks) blocks.push_back({block.id, block.data});
  reduction_->Add(from, std::move(blocks), static_cast<double>(m.tokens));
}

// The round's rule: everyone who is alive, or a quorum, or whoever has arrived by the deadline.
void Coordinator::MaybeCloseRound() {
  if (!reduction_ || closing_) return;
  const bool everyone = std::none_of(members_.begin(), members_.end(), [](const Member& each) {
    return each.state == MemberState::kTraining;
  });
  const bool enough = config_.quorum > 0 && record_.arrived >= config_.quorum;
  const bool overdue = deadline_passed_ && record_.arrived > 0;
  if (!everyone && !enough && !overdue) return;
  if (record_.arrived == 0) {
    throw std::runtime_error(
        fmt::format("round {}: no upload can be used; {}", order_.round,
                    last_rejection_.empty() ? std::string("no peer is left") : last_rejection_));
  }
  CloseRound();
}

// Reducing and publishing.

struct Coordinator::Outcome {
  World world;
  std::vector<int> source;        // [block], see Reduction::Result
  std::vector<bool> contributed;  // [block]
  double alpha = 0;
  std::vector<std::vector<double>> similarities;  // [layer], before merging
  std::vector<double> update_norms;               // [block]
};

void Coordinator::CloseRound() {
  closing_ = true;
  if (deadline_timer_) runtime_.Cancel(*std::exchange(deadline_timer_, std::nullopt));
  for (NodeId node = 0; node < allocation_.nodes(); ++node) {
    if (!settled_[static_cast<std::size_t>(node)]) reduction_->Exclude(node);
  }
  auto outcome = std::make_shared<Outcome>();
  outcome->alpha = MergeAlphaOfRound(config_.merge, committed_step_, record_.last_step);
  runtime_.Compute([this, outcome] { ReduceAndMerge(*outcome); }, sim::Time{0},
                   [this, outcome] { Publish(*outcome); });
}

// S = Σ w_n S_n / Σ w_n; expert e = its owner's copy; then w_i += α_t · mean_j(w_j − w_i). On
// another thread: it reads what does not change while the round is closing.
void Coordinator::ReduceAndMerge(Outcome& outcome) const {
  Reduction::Result reduced = reduction_->Finish(order_.round);
  outcome.world = reduced.world;
  outcome.source = std::move(reduced.source);
  for (const int source : outcome.source) {
    outcome.contributed.push_back(source != Reduction::kUnchanged);
  }
  if (outcome.alpha > 0) {
    outcome.world = MergeExperts(reduced.world, outcome.alpha, config_.merge, order_.round,
                                 &outcome.similarities);
    for (std::size_t i = 0; i < outcome.source.size(); ++i) {
      if (outcome.world.blocks[i].data != reduced.world.blocks[i].data) {
        outcome.source[i] = Reduction::kComputed;
      }
    }
  } else {
    for (int layer = 0; layer < table_->layers(); ++layer) {
      outcome.similarities.push_back(
          table_->Expert(layer, 0)
              ? ExpertSimilarity(outcome.world, layer, config_.merge.similarity)
              : std::vector<double>{});
    }
  }
  for (BlockId id = 0; id < table_->size(); ++id) {
    const auto i = static_cast<std::size_t>(id);
    // Sums of finite values can overflow.
    if (outcome.source[i] == Reduction::kComputed &&
        !AllFinite(table_->dtype(), *outcome.world.blocks[i].data)) {
      throw std::runtime_error(fmt::format("round {}: {} is not finite once reduced", order_.round,
                                           (*table_)[id].parts.front().name));
    }
  }
  outcome.update_norms = UpdateNorms(world_, outcome.world);
}

void Coordinator::Publish(const Outcome& outcome) {
  world_ = outcome.world;
  committed_round_ = order_.round;
  committed_step_ = record_.last_step;
  reduction_.reset();
  closing_ = false;
  for (std::size_t i = 0; i < outcome.source.size(); ++i) {
    if (outcome.contributed[i]) delivered_[i] = committed_round_;
    // Whose copy was adopted as it is holds the published value already, unless it began anew
    // since.
    const int source = outcome.source[i];
    if (source >= 0 && member(source).contributed == committed_round_) {
      member(source).held[i] = committed_round_;
    }
  }
  RecordRound(outcome);
  on_published_({committed_round_, committed_step_, NowSeconds(), bytes_so_far_, world_});

  analysis::RoundRecord record = record_;
  const std::int64_t before = bytes_so_far_;
  if (AllStepsDone()) {
    SendOrders();
  } else {
    BeginRound();
  }
  record.down_bytes += bytes_so_far_ - before;
  recorder_.Record(record);
  recorder_.Flush();
}

void Coordinator::RecordRound(const Outcome& outcome) {
  record_.end_s = NowSeconds();
  record_.alpha = outcome.alpha;
  record_.mean_ce = ce_steps_ > 0 ? ce_sum_ / static_cast<double>(ce_steps_) : std::nan("");
  double squares = 0;
  for (const double norm : outcome.update_norms) squares += norm * norm;
  record_.update_norm = std::sqrt(squares);
  for (const auto& row : RoutingRows(committed_round_, routing_)) recorder_.Record(row);
  for (const auto& row : ExpertRows(
           committed_round_,
           {*table_, routing_, outcome.update_norms, outcome.similarities, owners_, delivered_})) {
    recorder_.Record(row);
  }
  if (outcome.alpha > 0) Event(kCoordinator, "merge", fmt::format("alpha {:.6g}", outcome.alpha));
}

// Afterwards.

void Coordinator::On(NodeId from, const Applied& m) {
  Member& peer = member(from);
  bytes_so_far_ += WireBytes(m, *table_);
  if (auto row = peer.unconfirmed.extract(m.version)) {
    row.mapped().up_s = m.up_s;
    row.mapped().down_s = m.down_s;
    recorder_.Record(row.mapped());
  }
  if (peer.state == MemberState::kReleased && m.version == committed_round_) {
    peer.state = MemberState::kGone;
  }
}

void Coordinator::OnLost(NodeId node, const std::string& reason) {
  Member& peer = member(node);
  if (peer.state == MemberState::kLost || peer.state == MemberState::kGone) return;
  peer.state = MemberState::kLost;
  Event(node, "lost", reason);
  if (committed_round_ == 0 && !reduction_) {
    MaybeBegin();
  } else {
    MaybeCloseRound();
  }
}

bool Coordinator::finished() const {
  return AllStepsDone() && std::all_of(members_.begin(), members_.end(), [](const Member& each) {
           return each.state == MemberState::kGone || each.state == MemberState::kLost ||
                  each.state == MemberState::kAbsent;
         });
}

// Small things.

void Coordinator::Refuse(NodeId to, RejectReason reason, std::int32_t round, std::string detail) {
  Event(to, "reject", fmt::format("{}: {}", Name(reason), detail));
  Send(to, Reject{reason, round, std::move(detail)});
}

void Coordinator::Send(NodeId to, Message message) {
  const std::int64_t bytes = config_.charge(to, message);
  bytes_so_far_ += bytes;
  runtime_.Send(to, std::move(message), bytes);
}

void Coordinator::Event(NodeId node, std::string kind, std::string detail) {
  recorder_.Record(analysis::EventRecord{NowSeconds(), node, std::move(kind), std::move(detail)});
}

double Coordinator::NowSeconds() const { return sim::ToSeconds(runtime_.Now()); }

double Coordinator::WaitSeconds(const Member& peer) const {
  return sim::ToSeconds(runtime_.Now() - peer.arrived);
}

}  // namespace spes::trainer
