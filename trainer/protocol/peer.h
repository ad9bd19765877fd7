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

namespace spes::trainer {

enum class PeerState { kJoining, kComputing, kUploading, kWaiting, kFinished, kRefused };
std::string_view Name(PeerState state);

struct PeerConfig {
  NodeId node = 0;
  std::string scenario_hash;
  std::string world_hash;                                 // of the model that `node` starts from
  std::function<sim::Time(std::int64_t step)> step_time;  // charged for a step
  std::uint64_t incarnation = 1;  // another one each time this peer begins anew
};

// A state machine over Runtime: joins, trains as ordered, offers the result, adopts updates.
class Peer {
 public:
  // All references must outlive the peer. `stop` cuts training short at the next step.
  Peer(PeerConfig config, Node& node, std::shared_ptr<const BlockTable> table, Runtime& runtime,
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
  void BeginRound(const RoundOrder& order);
  void OnComputeDone();
  void SendOffer();
  void Send(Message message, std::function<void()> delivered = {});

  PeerConfig config_;
  Node& node_;
  std::shared_ptr<const BlockTable> table_;
  Runtime& runtime_;
  const std::atomic<bool>& stop_;
  PeerState state_ = PeerState::kJoining;

  bool busy_ = false;                 // a computation is under way
  std::optional<RoundOrder> queued_;  // the order that follows it
  std::vector<NodeBlock> adopt_;      // published values that the next computation adopts first
  bool reset_ = false;                // and whether it forgets the optimiser state
  std::shared_ptr<Offer> offer_;      // of the round at hand; kept until the round is published
  int attempts_ = 0;                  // sendings of this offer
  sim::Time offered_{0};              // when it left
  double up_s_ = 0;
};

}  // namespace spes::trainer
