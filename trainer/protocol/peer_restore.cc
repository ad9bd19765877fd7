// How a peer keeps its state, takes it up again and finds back to the coordinator.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "trainer/protocol/peer.h"

namespace spes::trainer {

void Peer::ReferTo(BlockId id, SharedBuffer value) {
  if (!refers_.empty()) refers_[static_cast<std::size_t>(id)] = std::move(value);
}

void Peer::TakeUp() {
  if (!config_.store) return;
  if (!RestoreBefore(std::numeric_limits<std::int32_t>::max())) Keep(Snapshot(), {});
}

// Takes up the newest state of the store's that is of a round before this one; false where none is.
bool Peer::RestoreBefore(std::int32_t round) {
  if (!config_.store) return false;
  const std::vector<std::int32_t> kept = config_.store->Rounds();
  return std::any_of(kept.begin(), kept.end(),
                     [&](std::int32_t each) { return each < round && Restore(each); });
}

// What does not change while a computation runs; Keep adds what the computation makes.
SavedPeer Peer::Snapshot() const {
  SavedPeer saved;
  if (!config_.store) return saved;
  saved.scenario_hash = config_.scenario_hash;
  saved.run = run_;
  saved.round = run_ == 0 ? 0 : order_.span.round;
  saved.held = held_;
  saved.order = order_;
  for (std::size_t i = 0; i < base_.size(); ++i) {
    saved.base.emplace(static_cast<BlockId>(i), base_[i]);
  }
  // The steps ahead are trained from them, while what is published next is on its way.
  for (std::size_t i = 0; order_.ahead > 0 && i < refers_.size(); ++i) {
    if (refers_[i]) saved.refers.emplace(static_cast<BlockId>(i), refers_[i]);
  }
  return saved;
}

// Durable once this returns. On the thread of the computation.
void Peer::Keep(SavedPeer saved, const Offer& offer) {
  if (!config_.store) return;
  saved.trains = node_.trainable();
  saved.offer = offer;
  for (OfferedBlock& block : saved.offer.blocks) {
    block = {block.id, block.checksum, nullptr, nullptr, nullptr};
  }
  const auto trained = [&saved](BlockId id) {
    return std::binary_search(saved.trains.begin(), saved.trains.end(), id);
  };
  // Other values that it only refers to are gone with the process, except those of the first
  // world.
  for (std::size_t i = 0; i < saved.held.size(); ++i) {
    const auto id = static_cast<BlockId>(i);
    if (saved.held[i] > 0 && !trained(id) && !saved.refers.contains(id)) saved.held[i] = -1;
  }
  std::erase_if(saved.base, [&](const auto& each) { return !trained(each.first); });
  saved.residuals = residuals_.all();
  config_.store->Write(saved.round, WriteSavedPeer(saved, node_.Save(), *table_));
}

// Takes up the state after this round; false where there is none that is whole.
bool Peer::Restore(std::int32_t round) {
  const std::optional<std::string> text = config_.store->Read(round);
  if (!text) return false;
  SavedPeer saved = ReadSavedPeer(*text, table_);
  if (saved.scenario_hash != config_.scenario_hash) {
    throw NotOfThisRun(
        fmt::format("node {}: what it has kept is of another scenario ({}, now {}); name another "
                    "folder, or remove it",
                    config_.node, saved.scenario_hash, config_.scenario_hash));
  }
  if (node_.trainable() != saved.trains) node_.SetTrainable(saved.trains, config_.keep_moments);
  node_.Load(saved.node);
  const std::vector<BlockId> before = std::exchange(trains_, std::move(saved.trains));
  if (run_ == 0) run_ = saved.run;
  at_start_ = saved.run == 0;
  skip_ = 0;
  trained_ = saved.round;
  const std::vector<Version> referred = std::exchange(held_, std::move(saved.held));
  // Of what it does not train it has the values of now, not those of then: where it has trained or
  // adopted them since, they are others.
  for (BlockId id = 0; id < table_->size(); ++id) {
    const auto i = static_cast<std::size_t>(id);
    if (std::binary_search(trains_.begin(), trains_.end(), id) || saved.refers.contains(id))
      continue;
    const bool trained = std::binary_search(before.begin(), before.end(), id);
    if (trained || held_[i] != referred[i]) held_[i] = -1;
  }
  order_ = std::move(saved.order);
  residuals_.Restore(std::move(saved.residuals));
  for (auto& [id, value] : saved.base) {
    if (!base_.empty()) base_[static_cast<std::size_t>(id)] = std::move(value);
  }
  for (const BlockId id : trains_) ReferTo(id, nullptr);
  for (const auto& [id, value] : saved.refers) {
    const NodeBlock block{id, value};
    node_.Apply({&block, 1});
    if (!base_.empty()) base_[static_cast<std::size_t>(id)] = value;
    ReferTo(id, value);
  }
  offer_.reset();
  ahead_.reset();
  adopt_.clear();
  owes_ahead_ = false;
  if (trained_ == 0) return true;
  // A result that was sent as it is can be sent again; a code, or a gradient, is made anew.
  offer_ = std::make_shared<Offer>(std::move(saved.offer));
  for (analysis::StepRecord& step : offer_->steps) step.node = config_.node;
  complete_ = IsPlain(config_.codec) && !config_.gradients;
  attempts_ = 0;
  owes_ahead_ = order_.ahead > 0;
  if (!complete_) return true;
  RoundOrder again = order_;
  again.blocks.emplace();
  std::vector<OfferedBlock> offered = std::exchange(offer_->blocks, {});
  for (const OfferedBlock& block : offered) again.blocks->push_back(block.id);
  offer_->tokens = 0;
  Fill(*offer_, again, base_);
  for (std::size_t i = 0; i < offered.size(); ++i) {
    if (offer_->blocks[i].checksum == offered[i].checksum) continue;
    throw std::runtime_error(fmt::format(
        "node {}: its state after round {} is not the one that it offered", config_.node, round));
  }
  return true;
}

// The order is of a round that it has trained and whose result is not there any more: back to the
// state that it trained that round from, as another incarnation.
void Peer::BeginAnew() {
  if (!RestoreBefore(trained_)) {
    // Nothing to go back to: the published world with the moments of now.
    trained_ = 0;
    offer_.reset();
    owes_ahead_ = false;
    std::fill(held_.begin(), held_.end(), -1);
  }
  ++config_.incarnation;
  Send(MakeJoin());
}

Join Peer::MakeJoin() const {
  Join join{config_.scenario_hash, "", config_.incarnation, run_, trained_, held_, {}};
  if (run_ == 0) {
    join.world_hash = config_.world_hash;
    join.held.clear();
  } else {
    join.trains = trains_;
  }
  return join;
}

void Peer::OnLost() {
  if (state_ == PeerState::kFinished || state_ == PeerState::kRefused || rejoin_) return;
  state_ = PeerState::kJoining;
  rejoin_ = runtime_.After(config_.rejoin_after, [this] {
    rejoin_.reset();
    Rejoin();
  });
}

void Peer::Rejoin() {
  if (state_ == PeerState::kFinished || state_ == PeerState::kRefused) return;
  if (rejoin_) runtime_.Cancel(*std::exchange(rejoin_, std::nullopt));
  state_ = PeerState::kJoining;
  Send(MakeJoin());
}

}  // namespace spes::trainer
