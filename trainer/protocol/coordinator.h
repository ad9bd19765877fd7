// The side of the protocol that owns the world: it orders rounds, reduces what comes back and
// publishes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/recorder.h"
#include "trainer/protocol/messages.h"
#include "trainer/protocol/runtime.h"
#include "trainer/sync/allocation.h"
#include "trainer/sync/merge.h"
#include "trainer/sync/reduction.h"

namespace spes::trainer {

struct CoordinatorConfig {
  std::string scenario_hash;
  std::int64_t total_steps = 0;  // of every node, from 1
  std::int64_t every = 0;        // H, local steps per round; the last round may be shorter
  MergeConfig merge;
  bool weigh_by_tokens = false;  // the mean of shared blocks; otherwise equal weights
  int quorum = 0;                // uploads that end a round; 0: all live nodes
  // A round ends then, with what has arrived (at least one); so does the wait for peers to join.
  std::optional<sim::Time> deadline;
  // Bytes that count for a message between the coordinator and the node; empty: its own.
  std::function<std::int64_t(NodeId, const Message&)> charge;
};

// A published round, for whoever saves or evaluates it. Copying the world copies pointers.
struct PublishedRound {
  std::int32_t round = 0;  // 0: the initial world
  std::int64_t step = 0;
  double virtual_s = 0;
  std::int64_t bytes_so_far = 0;  // up and down, all nodes
  World world;
};

// A state machine over Runtime. Every time and order of arrival gives the same world as long as the
// same nodes contribute to each round.
class Coordinator {
 public:
  using OnPublished = std::function<void(const PublishedRound&)>;

  // References must outlive the coordinator. `on_published` is called once per round, in order, the
  // initial world (round 0) included.
  Coordinator(CoordinatorConfig config, Allocation allocation, World initial, Runtime& runtime,
              analysis::Recorder& recorder, OnPublished on_published);

  // From peer `from`. Throws std::runtime_error when the run cannot go on: no upload of a round is
  // usable, or the log cannot be written.
  void OnMessage(NodeId from, const Message& message);

  // The peer cannot be reached any more; it takes no part until it joins again.
  void OnLost(NodeId node, const std::string& reason);

  // All steps are done, and every live peer knows it.
  bool finished() const;
  const World& world() const { return world_; }
  std::int32_t round() const { return committed_round_; }  // the last published
  std::int64_t step() const { return committed_step_; }
  std::int32_t total_rounds() const;

 private:
  enum class MemberState {
    kAbsent,    // has not joined yet
    kLost,      // cannot be reached any more, or has left
    kIdle,      // has joined, or offered a result, and waits for an order
    kTraining,  // has an order
    kReleased,  // has been told that the run is over
    kGone,      // has said that it knows
  };
  struct Member {
    MemberState state = MemberState::kAbsent;
    std::uint64_t incarnation = 0;
    bool admitted = false;
    bool reset = false;            // its last result was not finite
    std::int32_t contributed = 0;  // the last round that this incarnation contributed to
    std::vector<Version> held;     // [block]: the published version that the peer has; kNone: none
    std::int32_t round = 0;        // of its order
    int damaged = 0;               // uploads of this round
    sim::Time arrived{0};          // of its last result
    std::int64_t up_bytes = 0;     // of its order, damaged uploads included
    analysis::NodeRoundRecord record;  // of its last result, until an update answers it
    std::map<Version, analysis::NodeRoundRecord> unconfirmed;  // by update, until it is applied
  };
  struct Outcome;
  static constexpr Version kNone = -1;

  void On(NodeId from, const Join& m);
  void On(NodeId from, const Offer& m);
  void On(NodeId from, const Applied& m);

  void MaybeBegin();
  void BeginRound();
  void SendOrders();
  void SendOrder(NodeId to);
  void ArmDeadline();
  void OnDeadline();
  std::vector<SentBlock> TakeMissing(Member& peer);
  void Accept(NodeId from, const Offer& m);
  void MaybeCloseRound();
  void CloseRound();
  void ReduceAndMerge(Outcome& outcome) const;
  void Publish(const Outcome& outcome);
  void RecordRound(const Outcome& outcome);

  void Refuse(NodeId to, RejectReason reason, std::int32_t round, std::string detail);
  void Send(NodeId to, Message message);
  void Event(NodeId node, std::string kind, std::string detail);
  double NowSeconds() const;
  double WaitSeconds(const Member& peer) const;
  bool AllStepsDone() const { return committed_step_ >= config_.total_steps; }
  Member& member(NodeId node) { return members_[static_cast<std::size_t>(node)]; }

  CoordinatorConfig config_;
  Allocation allocation_;
  std::shared_ptr<const BlockTable> table_;
  World world_;
  std::string initial_hash_;
  Runtime& runtime_;
  analysis::Recorder& recorder_;
  OnPublished on_published_;

  std::vector<Member> members_;
  std::vector<Version> delivered_;  // [block]: the round of the last contribution
  std::vector<int> owners_;         // [block]: the first trainer, for the log
  std::int32_t committed_round_ = 0;
  std::int64_t committed_step_ = 0;
  std::int64_t bytes_so_far_ = 0;

  // The round at hand.
  RoundOrder order_;
  std::unique_ptr<Reduction> reduction_;  // null before the first and after the last round
  bool closing_ = false;                  // being reduced
  bool deadline_passed_ = false;
  std::optional<Runtime::TimerId> deadline_timer_;
  std::vector<bool> settled_;  // [node]: added to or excluded from the reduction
  analysis::RoundRecord record_;
  double ce_sum_ = 0;
  std::int64_t ce_steps_ = 0;
  RoutingCounts routing_;
  std::string last_rejection_;
};

}  // namespace spes::trainer
