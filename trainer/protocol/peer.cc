#include "trainer/protocol/peer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "trainer/protocol/wire_size.h"

namespace spes::trainer {

namespace {

constexpr int kMaxAttempts = 3;  // sendings of one offer that arrives damaged

// What an offer's steps took.
double MeasuredSeconds(const Offer& offer) {
  return std::accumulate(offer.steps.begin(), offer.steps.end(), 0.0,
                         [](double sum, const analysis::StepRecord& s) { return sum + s.wall_s; });
}

}  // namespace

std::string_view Name(PeerState state) {
  switch (state) {
    case PeerState::kJoining:
      return "joining";
    case PeerState::kComputing:
      return "computing";
    case PeerState::kUploading:
      return "uploading";
    case PeerState::kWaiting:
      return "waiting";
    case PeerState::kFinished:
      return "finished";
    case PeerState::kRefused:
      return "refused";
  }
  return "refused";
}

Peer::Peer(PeerConfig config, Node& node, const World& start, Runtime& runtime,
           const std::atomic<bool>& stop)
    : config_(std::move(config)),
      node_(node),
      table_(start.table),
      runtime_(runtime),
      stop_(stop),
      trains_(node.trainable()),
      held_(start.blocks.size(), 0) {
  if (config_.store && config_.overlaps) {
    for (const PublishedBlock& block : start.blocks) refers_.push_back(block.data);
  }
  if (!NeedsBase(config_.codec) && !(config_.decodes && NeedsBase(config_.published)) &&
      !Poisons()) {
    return;
  }
  for (const PublishedBlock& block : start.blocks) base_.push_back(block.data);
  if (Poisons()) start_ = base_;
}

void Peer::Start() {
  runtime_.Work([this] { TakeUp(); });  // a large state takes its time
  Send(MakeJoin());
}

void Peer::OnMessage(const Message& message) {
  if (const auto* admit = std::get_if<Admit>(&message)) return On(*admit);
  if (const auto* update = std::get_if<Update>(&message)) return On(*update);
  if (const auto* reject = std::get_if<Reject>(&message)) return On(*reject);
  // Anything else is not for a peer; a coordinator of the same version does not send it.
}

void Peer::On(const Admit& m) {
  // A repeated admission changes nothing; one of what it was before it began anew is another's.
  if (state_ != PeerState::kJoining || m.incarnation != config_.incarnation) return;
  if (at_start_) skip_ = m.steps_done;  // of its earlier lives nothing is left
  run_ = m.run;
  anew_ = false;  // whatever it was told before it was lost
  if (ContinueWith(m)) return;
  if (m.order.span.round <= (Training() ? order_.span.round : trained_)) {
    anew_ = busy_;
    if (!busy_) BeginAnew();
    return;
  }
  if (offer_ && !Training()) {  // the round that it offered is over
    AdoptOffered({m.order.span.round - 1, 0, false, m.blocks, std::nullopt, m.counted});
    offer_.reset();
  }
  Adopt(m.blocks);
  reset_all_ |= m.reset_optimizer;
  if (std::exchange(owes_ahead_, false)) TrainAhead();
  BeginRound(m.order);
}

// Whether `order` asks for what the order at hand does.
bool Peer::IsAtHand(const RoundOrder& order) const {
  const RoundSpan &a = order.span, &b = order_.span;
  return a.round == b.round && a.first_step == b.first_step && a.steps == b.steps &&
         order.ahead == order_.ahead && order.moments == order_.moments &&
         order.trains.value_or(trains_) == trains_ && AskedBlocks(order) == AskedBlocks(order_);
}

// Whether the order is the one at hand, given before the coordinator was lost: then its result
// stands, and of what was sent only the rest counts.
bool Peer::ContinueWith(const Admit& m) {
  if (!offer_ || !IsAtHand(m.order)) return false;
  if (queued_ || !(Training() || complete_)) return false;
  attempts_ = 0;
  const std::vector<BlockId> own = AskedBlocks(order_);
  std::vector<SentBlock> others;
  std::copy_if(m.blocks.begin(), m.blocks.end(), std::back_inserter(others),
               [&own](const SentBlock& block) {
                 return !std::binary_search(own.begin(), own.end(), block.id);
               });
  Adopt(others);
  if (Training()) {
    state_ = PeerState::kComputing;
    return true;
  }
  SendOffer();
  if (std::exchange(owes_ahead_, false)) TrainAhead();
  return true;
}

// Takes note of published values; the next computation adopts them.
void Peer::Adopt(const std::vector<SentBlock>& blocks) {
  for (const SentBlock& block : blocks) {
    const auto i = static_cast<std::size_t>(block.id);
    SharedBuffer data = block.data;
    if (!data) {
      data = Decode(config_.published, table_->dtype(), (*table_)[block.id], *block.code,
                    base_.empty() ? nullptr : base_[i].get());
    }
    if (block.code) decoded_bytes_ += table_->Bytes(block.id);
    if (!base_.empty()) base_[i] = data;
    held_[i] = block.version;
    adopt_.push_back({block.id, std::move(data), block.moments});
  }
}

// What is not among the update's blocks was published as it was offered. Where that is not what the
// node has, because it was coded or trained further, the node adopts it like any other value.
void Peer::AdoptOffered(const Update& m) {
  for (const OfferedBlock& block : offer_->blocks) {
    // Its loss is not owed: the value that it was lost from is not what the node goes on with.
    if (!m.counted) residuals_.Forget(block.id);
    if (config_.moments == MomentsRule::kReset) reset_.push_back(block.id);
    const auto found =
        std::lower_bound(m.blocks.begin(), m.blocks.end(), block.id,
                         [](const SentBlock& each, BlockId id) { return each.id < id; });
    if (found != m.blocks.end() && found->id == block.id) continue;
    held_[static_cast<std::size_t>(block.id)] = m.version;
    if (!block.data) continue;
    if (!base_.empty()) base_[static_cast<std::size_t>(block.id)] = block.data;
    if (block.code || order_.ahead > 0 || Poisons()) {
      adopt_.push_back({block.id, block.data, block.moments});
    }
  }
}

sim::Time Peer::CodingTime(std::int64_t bytes) const {
  return config_.coding_time && bytes > 0 ? config_.coding_time(bytes) : sim::Time{0};
}

// What the steps are charged, and when each ends.
sim::Time Peer::StepsTime(std::int64_t first_step, int steps,
                          std::vector<double>& step_end_s) const {
  sim::Time charged{0};
  if (!config_.step_time) return charged;
  for (std::int64_t i = 0; i < steps; ++i) {
    const sim::Time time = config_.step_time(first_step + i);
    charged += config_.drawn_out ? config_.drawn_out(charged, time) : time;
    step_end_s.push_back(sim::ToSeconds(runtime_.Now() + charged));
  }
  return charged;
}

TrainResult Peer::Train(std::int64_t first_step, int steps, double start_s,
                        const std::vector<double>& step_end_s) {
  double measured_s = start_s;
  TrainResult result = node_.TrainSteps(first_step, steps, stop_);
  for (std::size_t i = 0; i < result.steps.size(); ++i) {
    measured_s += result.steps[i].wall_s;
    result.steps[i].node = config_.node;
    result.steps[i].virtual_s = step_end_s.empty() ? measured_s : step_end_s[i];
  }
  return result;
}

// A round at the peer: adopt what was published, train H steps, copy the blocks that are due out.
void Peer::BeginRound(RoundOrder order) {
  state_ = PeerState::kComputing;
  if (busy_) {  // with steps ahead, or with an order that the coordinator has given up meanwhile
    queued_ = std::move(order);
    return;
  }
  busy_ = true;
  at_start_ = false;
  order_ = std::move(order);
  if (order_.trains) trains_ = *order_.trains;
  attempts_ = 0;
  complete_ = false;
  auto offer = std::make_shared<Offer>();
  offer->span = order_.span;
  offer->start_s = sim::ToSeconds(runtime_.Now());
  const RoundSpan& span = order_.span;

  auto ahead = std::exchange(ahead_, nullptr);
  // The coordinator may have gone on without this peer, to other steps than it trained ahead.
  if (ahead && ahead->first_step != span.first_step) ahead.reset();
  const int done = ahead ? std::min(ahead->steps, span.steps) : 0;
  std::vector<double> step_end_s;
  sim::Time charged = StepsTime(span.first_step + done, span.steps - done, step_end_s);
  charged += CodingTime(std::exchange(decoded_bytes_, 0));
  if (!IsPlain(config_.codec)) {
    std::int64_t coded = 0;
    for (const BlockId id : AskedBlocks(order_)) coded += table_->Bytes(id);
    charged += CodingTime(coded);
  }
  offer->compute_s = sim::ToSeconds(charged);
  if (ahead) {
    offer->start_s = ahead->start_s;
    offer->compute_s += ahead->compute_s;
  }

  // After a result that was not finite nothing of the node's own may remain.
  const double keep = reset_all_ ? 0 : config_.keep;
  if (std::exchange(reset_all_, false)) {
    reset_.resize(static_cast<std::size_t>(table_->size()));
    std::iota(reset_.begin(), reset_.end(), 0);
  }
  for (const BlockId id : AskedBlocks(order_)) held_[static_cast<std::size_t>(id)] = -1;
  for (const NodeBlock& block : adopt_) ReferTo(block.id, block.data);
  for (const BlockId id : trains_) ReferTo(id, nullptr);
  // What comes meanwhile is for the next round: this one's codes are from what is there now.
  auto work = [this, offer, ahead, done, keep, order = order_, base = base_, saved = Snapshot(),
               skip = std::exchange(skip_, 0), adopt = std::exchange(adopt_, {}),
               reset = std::exchange(reset_, {}), start_s = sim::ToSeconds(runtime_.Now()),
               step_end_s = std::move(step_end_s)]() mutable {
    if (skip > 0) node_.SkipSteps(skip);
    if (!reset.empty()) node_.ResetOptimizer(reset);
    if (order.trains) {
      node_.SetTrainable(*order.trains, config_.keep_moments);
      residuals_.KeepOnly(*order.trains);
    }
    node_.Apply(adopt, keep);
    TrainResult result =
        Train(order.span.first_step + done, order.span.steps - done, start_s, step_end_s);
    if (ahead) {
      offer->steps = std::move(ahead->result.steps);
      result.routing.Add(ahead->result.routing);
    }
    offer->steps.insert(offer->steps.end(), result.steps.begin(), result.steps.end());
    offer->routing = std::move(result.routing);
    if (!config_.step_time) offer->compute_s = MeasuredSeconds(*offer);
    Fill(*offer, order, base);
    if (!stop_) Keep(std::move(saved), *offer);
  };
  offer_ = std::move(offer);
  runtime_.Compute(std::move(work), charged, [this] { OnComputeDone(); });
}

// What the peer is to offer.
std::vector<BlockId> Peer::AskedBlocks(const RoundOrder& order) const {
  return order.blocks ? *order.blocks : order.trains.value_or(trains_);
}

// The blocks as they are to be sent, coded from `bases` (as base_), and the sums over the round's
// steps.
void Peer::Fill(Offer& offer, const RoundOrder& order, const std::vector<SharedBuffer>& bases) {
  for (analysis::StepRecord& step : offer.steps) {
    step.round = order.span.round;
    offer.tokens += step.tokens;
  }
  for (const BlockId id : order.blocks ? *order.blocks : node_.trainable()) {
    const BlockSpec& spec = (*table_)[id];
    const bool moments =
        order.moments == MomentsSent::kAll ||
        (order.moments == MomentsSent::kExperts && spec.kind == BlockKind::kExpert);
    NodeBlock block = std::move(node_.Read({&id, 1}, moments).front());
    OfferedBlock offered{id, 0, std::move(block.data), nullptr, std::move(block.moments)};
    if (offered.moments && offered.moments->updates > order.span.last_step()) {
      // Rounds that it had to do again count once.
      auto counted = std::make_shared<BlockMoments>(*offered.moments);
      counted->updates = order.span.last_step();
      offered.moments = std::move(counted);
    }
    if (Poisons()) {
      const auto i = static_cast<std::size_t>(id);
      offered.data = Poisoned(config_.poison, order.span.round, id, *table_, offered.data,
                              config_.gradients ? nullptr : bases[i].get(), start_[i]);
    }
    if (!IsPlain(config_.codec)) {
      Buffer* residual = residuals_.Of(config_.codec, *table_, id);
      const Buffer* base = bases.empty() ? nullptr : bases[static_cast<std::size_t>(id)].get();
      CodedBlock coded = Encode(config_.codec, table_->dtype(), spec, offered.data, base, residual);
      offered.data = std::move(coded.decoded);
      offered.code = std::move(coded.code);
    }
    offered.checksum = BlockChecksum(spec, table_->dtype(), *offered.data);
    offer.blocks.push_back(std::move(offered));
  }
}

void Peer::OnComputeDone() {
  busy_ = false;
  if (stop_) return;  // cut short: an offer of fewer steps must not reach the world
  if (state_ == PeerState::kFinished) return;  // all was over before it was done
  trained_ = order_.span.round;
  complete_ = true;
  if (std::exchange(anew_, false)) return BeginAnew();
  if (queued_) {  // the coordinator has gone on: what it lacks was sent, and is adopted first
    for (const OfferedBlock& block : offer_->blocks) residuals_.Forget(block.id);
    const RoundOrder next = *std::exchange(queued_, std::nullopt);
    if (state_ == PeerState::kComputing) return BeginRound(next);
    // Lost meanwhile: another order will come. Of this result nothing is wanted any more.
    complete_ = false;
    return offer_.reset();
  }
  // While it is joining the result waits: the coordinator may still want it.
  if (state_ == PeerState::kComputing) SendOffer();
  if (order_.ahead > 0) TrainAhead();
}

// The first steps of the next round, from this node's own values: the published ones are adopted
// after them (Streaming DiLoCo's overlap).
void Peer::TrainAhead() {
  busy_ = true;
  ahead_ = std::make_shared<Ahead>();
  ahead_->first_step = order_.span.first_step + order_.span.steps;
  ahead_->steps = order_.ahead;
  ahead_->start_s = sim::ToSeconds(runtime_.Now());
  std::vector<double> step_end_s;
  const sim::Time charged = StepsTime(ahead_->first_step, ahead_->steps, step_end_s);
  ahead_->compute_s = sim::ToSeconds(charged);
  runtime_.Compute(
      [this, ahead = ahead_, step_end_s = std::move(step_end_s)] {
        ahead->result = Train(ahead->first_step, ahead->steps, ahead->start_s, step_end_s);
      },
      charged,
      [this] {
        busy_ = false;
        if (std::exchange(anew_, false)) return BeginAnew();
        if (!queued_ || stop_) return;
        const RoundOrder next = *std::exchange(queued_, std::nullopt);
        // Otherwise it was lost meanwhile, and another order will come.
        if (state_ == PeerState::kComputing) BeginRound(next);
      });
}

void Peer::SendOffer() {
  state_ = PeerState::kUploading;
  if (attempts_++ == 0) offered_ = runtime_.Now();
  Send(*offer_, [this, round = offer_->span.round] {
    if (state_ != PeerState::kUploading || !offer_ || offer_->span.round != round) return;
    up_s_ = sim::ToSeconds(runtime_.Now() - offered_);
    state_ = PeerState::kWaiting;
  });
}

void Peer::On(const Reject& m) {
  if (m.reason == RejectReason::kScenario || m.reason == RejectReason::kOtherRun) {
    state_ = PeerState::kRefused;
    std::string why = m.detail;
    if (m.reason == RejectReason::kOtherRun) {
      const std::string place = config_.kept_in.empty() ? "its folder" : config_.kept_in;
      why += fmt::format(
          ", this node holds round {} in {}: has the coordinator lost its journal, or was it "
          "started "
          "in another folder? To give this state up, remove {}",
          trained_, place, place);
    }
    throw NotOfThisRun(fmt::format("the coordinator refuses node {}: {}", config_.node, why));
  }
  // Of no round is word that nothing of it is taken any more.
  if (m.reason == RejectReason::kDistrusted && m.round == 0) {
    state_ = PeerState::kRefused;
    refusal_ = m.detail;
    return;
  }
  if (m.reason == RejectReason::kNotMember) {
    if (state_ != PeerState::kJoining) Rejoin();
    return;
  }
  if (!offer_ || m.round != offer_->span.round) return;  // about an offer that is over
  if (m.reason == RejectReason::kCorrupt && attempts_ < kMaxAttempts) SendOffer();
  // Otherwise the update of this round brings the published values of this node's blocks.
}

void Peer::On(const Update& m) {
  const bool offered = state_ == PeerState::kUploading || state_ == PeerState::kWaiting;
  const bool too_late = state_ == PeerState::kJoining && !m.next;  // all was over before it joined
  if (!offered && !too_late) return;                               // repeated
  if (offered && m.version < offer_->span.round) return;           // likewise
  Applied applied{m.version, up_s_, 0};
  if (offered)
    applied.down_s = std::max(0.0, sim::ToSeconds(runtime_.Now() - offered_) - up_s_ - m.waited_s);
  if (offered) AdoptOffered(m);
  offer_.reset();
  up_s_ = 0;
  Adopt(m.blocks);
  reset_all_ = m.reset_optimizer;
  Send(applied);
  if (m.next) {
    BeginRound(*m.next);
  } else {
    state_ = PeerState::kFinished;
    queued_.reset();
    anew_ = false;
  }
}

void Peer::Send(Message message, std::function<void()> delivered) {
  const std::int64_t bytes = WireBytes(message, *table_);
  runtime_.Send(kCoordinator, std::move(message), bytes, std::move(delivered));
}

}  // namespace spes::trainer
