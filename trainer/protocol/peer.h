// The side of the protocol that trains.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/node.h"
#include "trainer/protocol/messages.h"
#include "trainer/protocol/peer_store.h"
#include "trainer/protocol/poison.h"
#include "trainer/protocol/runtime.h"
#include "trainer/protocol/saved_peer.h"
#include "trainer/sync/codec.h"
#include "trainer/sync/reduction.h"
#include "trainer/sync/residuals.h"

namespace spes::trainer {

// A peer, or what it has kept, is not of the coordinator's run: only its user can mend that.
struct NotOfThisRun : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

enum class PeerState { kJoining, kComputing, kUploading, kWaiting, kFinished, kRefused };
std::string_view Name(PeerState state);

struct PeerConfig {
  NodeId node = 0;
  std::string scenario_hash = {};
  std::string world_hash = {};  // of the model that `node` starts from
  // Charged for a step; empty: nothing is charged and the log shows what the steps took.
  std::function<sim::Time(std::int64_t step)> step_time = {};
  // What a step takes that begins `after` from now and would be charged `time`. Empty: that.
  std::function<sim::Time(sim::Time after, sim::Time time)> drawn_out = {};
  std::uint64_t incarnation = 1;  // another one each time this peer begins anew
  CodecConfig codec = {};         // of what it offers
  CodecConfig published = {};     // of what it is sent
  bool decodes = false;           // codes come over a wire, without what they are read back as
  // Charged for writing down or reading back so many bytes of values; empty: nothing.
  std::function<sim::Time(std::int64_t bytes)> coding_time = {};
  MomentsRule moments = MomentsRule::kKept;
  bool keep_moments = false;   // of blocks that it trains no more, for when they come back
  bool overlaps = true;        // a round may have steps ahead, which are trained before its result
  double keep = 0;             // share of its own value that remains when it adopts a published one
  bool gradients = false;      // the node offers gradients, which are not part of its state
  PoisonConfig poison = {};    // what it sends in place of what it has trained
  PeerStore* store = nullptr;  // where it keeps what survives it; null: nothing does
  std::string kept_in = {};    // where that is, for people
  sim::Time rejoin_after{5'000'000'000};  // from the loss of the coordinator to joining again
};

// A state machine over Runtime: joins, trains as ordered, offers the result, adopts updates.
class Peer {
 public:
  // All references must outlive the peer. `start`: the world that `node` starts from. `stop` cuts
  // training short at the next step.
  Peer(PeerConfig config, Node& node, const World& start, Runtime& runtime,
       const std::atomic<bool>& stop);

  // Takes up what the store has, if anything; otherwise keeps what the node begins with. Joins.
  // Throws NotOfThisRun, one line, when what is there is of another scenario.
  void Start();

  // From the coordinator. Throws NotOfThisRun when it refuses this peer for good.
  void OnMessage(const Message& message);

  // The way to the coordinator is lost, and whatever was on it: joins again after a while.
  void OnLost();
  // The same, but there is a way again: joins at once.
  void Rejoin();

  PeerState state() const { return state_; }
  // Why the coordinator trusts this peer no more; empty: it does. Its state is kRefused then.
  const std::string& refusal() const { return refusal_; }
  std::int32_t round() const { return order_.span.round; }  // of the last order; 0: none yet

 private:
  void On(const Admit& m);
  void On(const Reject& m);
  void On(const Update& m);
  void BeginRound(RoundOrder order);
  bool IsAtHand(const RoundOrder& order) const;
  bool ContinueWith(const Admit& m);
  bool Training() const { return busy_ && !ahead_; }  // the round at hand
  void OnComputeDone();
  void TrainAhead();
  void SendOffer();
  void Adopt(const std::vector<SentBlock>& blocks);
  void AdoptOffered(const Update& m);
  sim::Time StepsTime(std::int64_t first_step, int steps, std::vector<double>& step_end_s) const;
  sim::Time CodingTime(std::int64_t bytes) const;
  TrainResult Train(std::int64_t first_step, int steps, double start_s,
                    const std::vector<double>& step_end_s);
  void Fill(Offer& offer, const RoundOrder& order, const std::vector<SharedBuffer>& bases);
  bool Poisons() const { return config_.poison.kind != PoisonKind::kNone; }
  std::vector<BlockId> AskedBlocks(const RoundOrder& order) const;
  // In peer_restore.cc.
  void TakeUp();
  bool RestoreBefore(std::int32_t round);
  void ReferTo(BlockId id, SharedBuffer value);
  SavedPeer Snapshot() const;
  void Keep(SavedPeer saved, const Offer& offer);
  bool Restore(std::int32_t round);
  void BeginAnew();
  Join MakeJoin() const;
  void Send(Message message, std::function<void()> delivered = {});

  PeerConfig config_;
  Node& node_;
  std::shared_ptr<const BlockTable> table_;
  Runtime& runtime_;
  const std::atomic<bool>& stop_;
  PeerState state_ = PeerState::kJoining;
  std::string refusal_;

  bool busy_ = false;                 // a computation is under way
  std::optional<RoundOrder> queued_;  // the order that follows it
  RoundOrder order_;                  // at hand
  std::vector<NodeBlock> adopt_;      // published values that the next computation adopts first
  std::int64_t decoded_bytes_ = 0;    // of their values, of those that came as codes
  bool reset_all_ = false;            // and whether it forgets all optimiser state,
  std::vector<BlockId> reset_;        // or that of these
  std::shared_ptr<Offer> offer_;      // of the round at hand; kept until the round is published
  bool complete_ = false;             // it has its values
  int attempts_ = 0;                  // sendings of this offer
  sim::Time offered_{0};              // when it left
  double up_s_ = 0;

  std::vector<BlockId> trains_;  // as the last order has it
  std::uint64_t run_ = 0;        // the coordinator's; 0: never let in
  bool at_start_ = true;         // in the state before its first round: of its data nothing is read
  std::int64_t skip_ = 0;        // steps whose data the next computation leaves out
  std::int32_t trained_ = 0;     // the last round that is trained
  bool owes_ahead_ = false;      // restored without the steps that it had trained ahead
  bool anew_ = false;            // begins anew once the computation under way is done
  std::vector<Version> held_;    // [block]: the published value it goes on with, −1: none
  // [block]: what the node refers to; null where it trains. Empty where no state has to have it.
  std::vector<SharedBuffer> refers_;
  std::optional<Runtime::TimerId> rejoin_;

  // Steps of the next round that were trained while this one's result was on its way.
  struct Ahead {
    std::int64_t first_step = 0;
    int steps = 0;
    double start_s = 0, compute_s = 0;
    TrainResult result;
  };
  std::shared_ptr<Ahead> ahead_;

  // What the next offer is coded from; a computation has a copy of its own.
  std::vector<SharedBuffer> base_;   // [block]; empty where nothing needs them
  std::vector<SharedBuffer> start_;  // [block]: of a peer that poisons; otherwise empty
  // What coding has lost so far. Touched by computations, and by messages only while none codes.
  Residuals residuals_;
};

}  // namespace spes::trainer
