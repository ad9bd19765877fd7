// The side of the protocol that trains.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/node.h"
#include "trainer/protocol/messages.h"
#include "trainer/protocol/runtime.h"
#include "trainer/sync/codec.h"
#include "trainer/sync/reduction.h"
#include "trainer/sync/residuals.h"

namespace spes::trainer {

enum class PeerState { kJoining, kComputing, kUploading, kWaiting, kFinished, kRefused };
std::string_view Name(PeerState state);

struct PeerConfig {
  NodeId node = 0;
  std::string scenario_hash = {};
  std::string world_hash = {};  // of the model that `node` starts from
  std::function<sim::Time(std::int64_t step)> step_time = {};  // charged for a step
  std::uint64_t incarnation = 1;  // another one each time this peer begins anew
  CodecConfig codec = {};         // of what it offers
  // Charged for writing down or reading back so many bytes of values; empty: nothing.
  std::function<sim::Time(std::int64_t bytes)> coding_time = {};
  MomentsRule moments = MomentsRule::kKept;
  bool keep_moments = false;  // of blocks that it trains no more, for when they come back
  double keep = 0;            // share of its own value that remains when it adopts a published one
};

// A state machine over Runtime: joins, trains as ordered, offers the result, adopts updates.
class Peer {
 public:
  // All references must outlive the peer. `start`: the world that `node` starts from. `stop` cuts
  // training short at the next step.
  Peer(PeerConfig config, Node& node, const World& start, Runtime& runtime,
       const std::atomic<bool>& stop);

  // Joins. Once.
  void Start();

  // From the coordinator. Throws std::runtime_error when it refuses this peer for good.
  void OnMessage(const Message& message);

  PeerState state() const { return state_; }

 private:
  void On(const Admit& m);
  void On(const Reject& m);
  void On(const Update& m);
  void BeginRound(RoundOrder order);
  void OnComputeDone();
  void TrainAhead();
  void SendOffer();
  void Adopt(const std::vector<SentBlock>& blocks);
  void AdoptOffered(const Update& m);
  sim::Time StepsTime(std::int64_t first_step, int steps, std::vector<double>& step_end_s) const;
  sim::Time CodingTime(std::int64_t bytes) const;
  TrainResult Train(std::int64_t first_step, int steps, const std::vector<double>& step_end_s);
  void Fill(Offer& offer, const RoundOrder& order);
  void Send(Message message, std::function<void()> delivered = {});

  PeerConfig config_;
  Node& node_;
  std::shared_ptr<const BlockTable> table_;
  Runtime& runtime_;
  const std::atomic<bool>& stop_;
  PeerState state_ = PeerState::kJoining;

  bool busy_ = false;                 // a computation is under way
  std::optional<RoundOrder> queued_;  // the order that follows it
  RoundOrder order_;                  // at hand
  std::vector<NodeBlock> adopt_;      // published values that the next computation adopts first
  std::int64_t decoded_bytes_ = 0;    // of their values, of those that came as codes
  bool reset_all_ = false;            // and whether it forgets all optimiser state,
  std::vector<BlockId> reset_;        // or that of these
  std::shared_ptr<Offer> offer_;      // of the round at hand; kept until the round is published
  int attempts_ = 0;                  // sendings of this offer
  bool rejected_ = false;             // for good
  sim::Time offered_{0};              // when it left
  double up_s_ = 0;

  // Steps of the next round that were trained while this one's result was on its way.
  struct Ahead {
    std::int64_t first_step = 0;
    int steps = 0;
    double start_s = 0, compute_s = 0;
    TrainResult result;
  };
  std::shared_ptr<Ahead> ahead_;

  // What the next offer is coded from, and what coding has lost so far. Touched by computations,
  // and by messages only while none codes.
  std::vector<SharedBuffer> base_;  // [block]; empty where the codec needs none
  Residuals residuals_;
};

}  // namespace spes::trainer
