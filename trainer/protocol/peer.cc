#include "trainer/protocol/peer.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "trainer/protocol/wire_size.h"

namespace spes::trainer {

namespace {
constexpr int kMaxAttempts = 3;  // sendings of one offer that arrives damaged
}

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

Peer::Peer(PeerConfig config, Node& node, std::shared_ptr<const BlockTable> table, Runtime& runtime,
           const std::atomic<bool>& stop)
    : config_(std::move(config)),
      node_(node),
      table_(std::move(table)),
      runtime_(runtime),
      stop_(stop) {}

void Peer::Start() { Send(Join{config_.scenario_hash, config_.world_hash, config_.incarnation}); }

void Peer::OnMessage(const Message& message) {
  if (const auto* admit = std::get_if<Admit>(&message)) return On(*admit);
  if (const auto* update = std::get_if<Update>(&message)) return On(*update);
  if (const auto* reject = std::get_if<Reject>(&message)) return On(*reject);
  // Anything else is not for a peer; a coordinator of the same version does not send it.
}

void Peer::On(const Admit& m) {
  if (state_ != PeerState::kJoining) return;  // a repeated admission changes nothing
  for (const SentBlock& block : m.blocks) adopt_.push_back({block.id, block.data});
  BeginRound(m.order);
}

// A round at the peer: adopt what was published, train H steps, copy the trainable blocks out.
void Peer::BeginRound(const RoundOrder& order) {
  state_ = PeerState::kComputing;
  if (busy_) {  // with an order that the coordinator has given up meanwhile
    queued_ = order;
    return;
  }
  busy_ = true;
  auto offer = std::make_shared<Offer>();
  offer->order = order;
  offer->start_s = sim::ToSeconds(runtime_.Now());
  attempts_ = 0;

  sim::Time charged{0};
  std::vector<double> step_end_s;
  for (std::int64_t i = 0; i < order.steps; ++i) {
    charged += config_.step_time(order.first_step + i);
    step_end_s.push_back(offer->start_s + sim::ToSeconds(charged));
  }
  offer->compute_s = sim::ToSeconds(charged);

  auto work = [this, offer, order, adopt = std::exchange(adopt_, {}),
               reset = std::exchange(reset_, false), step_end_s = std::move(step_end_s)] {
    node_.Apply(adopt);
    if (reset) node_.ResetOptimizer();
    TrainResult result = node_.TrainSteps(order.first_step, order.steps, stop_);
    for (std::size_t i = 0; i < result.steps.size(); ++i) {
      analysis::StepRecord& step = result.steps[i];
      step.node = config_.node;
      step.round = order.round;
      step.virtual_s = step_end_s[i];
      offer->tokens += step.tokens;
    }
    offer->steps = std::move(result.steps);
    offer->routing = std::move(result.routing);
    for (NodeBlock& block : node_.ReadTrainable()) {
      const std::uint64_t sum = BlockChecksum((*table_)[block.id], table_->dtype(), *block.data);
      offer->blocks.push_back({block.id, sum, std::move(block.data)});
    }
  };
  offer_ = std::move(offer);
  runtime_.Compute(std::move(work), charged, [this] { OnComputeDone(); });
}

void Peer::OnComputeDone() {
  busy_ = false;
  if (queued_) return BeginRound(*std::exchange(queued_, std::nullopt));
  if (state_ != PeerState::kComputing) return;
  if (stop_) return;  // cut short: an offer of fewer steps must not reach the world
  SendOffer();
}

void Peer::SendOffer() {
  state_ = PeerState::kUploading;
  if (attempts_++ == 0) offered_ = runtime_.Now();
  Send(*offer_, [this, round = offer_->order.round] {
    if (state_ != PeerState::kUploading || !offer_ || offer_->order.round != round) return;
    up_s_ = sim::ToSeconds(runtime_.Now() - offered_);
    state_ = PeerState::kWaiting;
  });
}

void Peer::On(const Reject& m) {
  if (m.reason == RejectReason::kScenario) {
    state_ = PeerState::kRefused;
    throw std::runtime_error(
        fmt::format("the coordinator refuses node {}: {}", config_.node, m.detail));
  }
  if (m.reason == RejectReason::kNotMember) {
    if (state_ == PeerState::kJoining) return;
    state_ = PeerState::kJoining;  // whatever it holds is of no version any more
    offer_.reset();
    Send(Join{config_.scenario_hash, "", config_.incarnation});
    return;
  }
  if (!offer_ || m.round != offer_->order.round) return;  // about an offer that is over
  if (m.reason == RejectReason::kCorrupt && attempts_ < kMaxAttempts) SendOffer();
  // Otherwise the update of this round brings the published values of this node's blocks.
}

void Peer::On(const Update& m) {
  const bool offered = state_ == PeerState::kUploading || state_ == PeerState::kWaiting;
  const bool too_late = state_ == PeerState::kJoining && !m.next;  // all was over before it joined
  if (!offered && !too_late) return;                               // repeated
  if (offered && m.version < offer_->order.round) return;          // likewise
  Applied applied{m.version, up_s_, 0};
  if (offered)
    applied.down_s = std::max(0.0, sim::ToSeconds(runtime_.Now() - offered_) - up_s_ - m.waited_s);
  offer_.reset();
  up_s_ = 0;
  for (const SentBlock& block : m.blocks) adopt_.push_back({block.id, block.data});
  reset_ = m.reset_optimizer;
  Send(applied);
  if (m.next) {
    BeginRound(*m.next);
  } else {
    state_ = PeerState::kFinished;
  }
}

void Peer::Send(Message message, std::function<void()> delivered) {
  const std::int64_t bytes = WireBytes(message, *table_);
  runtime_.Send(kCoordinator, std::move(message), bytes, std::move(delivered));
}

}  // namespace spes::trainer
