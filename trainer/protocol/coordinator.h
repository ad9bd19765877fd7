// The side of the protocol that owns the world: it orders rounds, reduces what comes back and
// publishes.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/recorder.h"
#include "trainer/protocol/coordinator_state.h"
#include "trainer/protocol/held_blocks.h"
#include "trainer/protocol/messages.h"
#include "trainer/protocol/offer_check.h"
#include "trainer/protocol/round_log.h"
#include "trainer/protocol/runtime.h"
#include "trainer/protocol/schedule.h"
#include "trainer/protocol/trust.h"
#include "trainer/protocol/wire_size.h"
#include "trainer/protocol/world_update.h"
#include "trainer/sync/allocation.h"
#include "trainer/sync/reduction.h"

namespace spes::trainer {

// What becomes of a result whose round has ended without it.
enum class LateRule {
  kDrop,
  kNextRound,  // it is its node's contribution to the round at hand
};

// What becomes of the blocks that nobody trains any more because their trainers are lost.
enum class OrphanRule {
  kFrozen,      // they stay as they are
  kHandedOver,  // the live node that trains the least takes them over, from the next round on
};

struct CoordinatorConfig {
  std::string scenario_hash;
  std::uint64_t run = 1;  // another one for each run, not 0; a resumed one keeps the first's
  ScheduleConfig schedule;
  AllocationConfig allocation;  // for changes between rounds
  std::vector<NodeCapacity> capacities;
  ReductionConfig reduction;
  MomentsRule moments = MomentsRule::kKept;
  WorldUpdateConfig update;
  int quorum = 0;  // uploads that end a round; 0: all live nodes
  // A round ends then, with what has arrived (at least one); so does the wait for peers to join,
  // and at the end of the run that for whoever has not said that it knows.
  std::optional<sim::Time> deadline;
  // So long a round waits for a node whose connection was lost before it goes on without it, and
  // without a deadline the end of the run for whoever says nothing. A round of which all that came
  // was refused waits as long again for those who are away; without anything usable the run ends
  // then. 0: not at all; whoever does not come when the coordinator has begun anew is waited for
  // for a minute.
  sim::Time patience{0};
  // The most that a node can have trained on in a step.
  std::int64_t tokens_per_step = std::int64_t{1} << 30;
  OrphanRule orphans = OrphanRule::kFrozen;
  CodecConfig offered = {};  // how peers code what they send
  // For each offer that has come as codes: where they are read into. Empty: ordinary memory.
  std::function<Allocate()> decode_memory = {};
  // Writes down what would be needed to go on after a round, before anyone is told of it; on the
  // thread of the reduction. Throws when it cannot: the run ends then. Empty: nothing is kept.
  std::function<void(const CoordinatorState&)> journal = {};
  LateRule late = LateRule::kDrop;
  // A result that is s rounds late counts (1 + s)^−power of a timely one in a mean.
  double staleness_power = 0;
  TrustConfig trust = {};
  // Nothing of this node is taken any more, nor has it anything more to be told; of a run that is
  // resumed also those of before. Empty: nobody has to know.
  std::function<void(NodeId node, const std::string& reason)> on_quarantine = {};
  // Charged for writing down or reading back so many bytes of values; empty: nothing.
  std::function<sim::Time(std::int64_t bytes)> coding_time;
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

// What the coordinator is doing.
enum class CoordinatorPhase {
  kWaiting,   // for nodes to join, before the first round
  kTraining,  // nodes train, or send what they have trained
  kReducing,  // the round's results become a world, which is written down and published
  kFinished,  // all steps are done; nodes are told
};

// A node as the coordinator sees it, for whoever shows it.
struct MemberStatus {
  std::string_view state;        // one of kMemberStates
  std::int32_t contributed = 0;  // the last round that its result was part of, since it joined
};
inline constexpr std::string_view kMemberStates[] = {"absent",   "missing",  "lost", "idle",
                                                     "training", "released", "gone", "quarantined"};

// A state machine over Runtime. Every time and order of arrival gives the same world as long as the
// same nodes contribute to each round.
class Coordinator {
 public:
  using OnPublished = std::function<void(const PublishedRound&)>;

  // `allocation`: of the first round. References must outlive the coordinator. `on_published` is
  // called once per round, in order, the initial world (round 0) included; of a run that is
  // resumed, the world that it goes on from. Throws std::invalid_argument on a configuration or a
  // state that does not go together.
  Coordinator(CoordinatorConfig config, Allocation allocation, World initial, Runtime& runtime,
              analysis::Recorder& recorder, OnPublished on_published,
              std::optional<CoordinatorState> resume = {});

  // From peer `from`. Throws std::runtime_error when the run cannot go on: no upload of a round is
  // usable, or the log cannot be written.
  void OnMessage(NodeId from, const Message& message);

  // The peer cannot be reached any more; it takes no part until it joins again. The round at hand
  // waits for that as long as `patience` says.
  void OnLost(NodeId node, const std::string& reason);

  // All steps are done, and every live peer knows it.
  bool finished() const;
  // Why nothing of this node is taken any more; empty: it is trusted.
  const std::string& quarantine(NodeId node) const {
    return members_[static_cast<std::size_t>(node)].standing.quarantine;
  }
  const World& world() const { return published_.world; }
  std::int32_t round() const { return committed_round_; }  // the last published
  std::int64_t step() const { return committed_step_; }
  std::int32_t total_rounds() const { return schedule_.rounds(); }
  CoordinatorPhase phase() const;
  std::vector<MemberStatus> Members() const;  // [node]

 private:
  // Named in kMemberStates, whose last is that of a member with a quarantine.
  enum class MemberState {
    kAbsent,    // has not joined yet
    kMissing,   // cannot be reached; it is waited for
    kLost,      // cannot be reached any more, or has left
    kIdle,      // has joined, or offered a result, and waits for an order
    kTraining,  // has an order
    kReleased,  // has been told that the run is over
    kGone,      // has said that it knows
  };
  struct Member {
    MemberState state = MemberState::kAbsent;
    std::uint64_t incarnation = 0;
    std::deque<std::uint64_t> earlier;  // incarnations, the latest of them
    bool admitted = false;
    NodeStanding standing;         // but for `lost`, which its state says
    std::int32_t contributed = 0;  // the last round that this incarnation contributed to
    std::int32_t counted = 0;      // the round of its last result that counted, in whatever round
    std::int32_t result = 0;       // the round of the last result that it has
    HeldBlocks held;
    std::vector<BlockId> trains;  // as it was told
    std::optional<Runtime::TimerId> patience;
    OrderedOffer ordered;  // the last time
    // [ordered.blocks]: the published values that it trains them from; empty where no result is
    // measured from any but the world at hand.
    std::vector<SharedBuffer> trains_from;
    int damaged = 0;                   // uploads of this round
    sim::Time arrived{0};              // of its last result
    std::int64_t up_bytes = 0;         // of its order, damaged uploads included
    analysis::NodeRoundRecord record;  // of its last result, until an update answers it
    std::map<Version, analysis::NodeRoundRecord> unconfirmed;  // by update, until it is applied
  };
  // A result of the round at hand that is not settled: it is tried out, or waits to be judged.
  struct Looked {
    Offer offer;
    std::uint64_t incarnation = 0;  // that sent it
    std::vector<double> squares;    // as RoundLog::Accept has them
    Evidence evidence;
    std::uint64_t trial = 0;     // the number of its trial
    std::optional<double> loss;  // of the world with its blocks
    bool undecided = false;      // waits to be judged
  };
  // Bytes that were sent, and the values and moments among them.
  struct Counted {
    std::int64_t all = 0;
    WireParts parts;
  };

  void On(NodeId from, const Join& m);
  void On(NodeId from, Offer m);
  void On(NodeId from, const Applied& m);

  // In coordinator_members.cc.
  void GiveUp(NodeId node, const std::string& reason);
  void Miss(NodeId node, const std::string& reason, sim::Time patience);
  void StopWaiting(Member& peer);
  void MissTheAbsent();
  Allocation WithoutTheLost() const;
  void TellHandedOver();
  void CountMember(NodeId node);
  // In coordinator_trust.cc.
  std::vector<double> Squares(const Offer& m, const World& from) const;
  Evidence SizesOfLate(const Member& peer, const Offer& m) const;
  void Take(NodeId from, Offer m, const Evidence& late_sizes = {});
  void TryPublished();
  void TryOut(NodeId from);
  void Weigh(NodeId from);
  void AcceptLooked(NodeId from, const Looked& looked);
  bool HasOffered(NodeId node) const;
  int Undecided() const;
  void JudgeUndecided();
  void LeaveUntried();
  void EndTrust();
  void Quarantine(NodeId node, const std::string& reason);
  std::vector<double> Reach(const Offer& m) const;
  sim::Time HeldOutTime();
  // In coordinator_resume.cc.
  void Resume(CoordinatorState state);
  CoordinatorState StateNow() const;
  void AddUpdate(const WorldUpdate& update, CoordinatorState& state);

  void EndRun(analysis::RoundRecord& row);
  void ArmEnd();
  void MaybeForgetDeadline();
  bool SomeoneMayCome() const;
  bool AwaitsWhoMayCome();

  void MaybeBegin();
  void BeginRound(analysis::RoundRecord& row);
  void GoOn();
  void SendOrders(analysis::RoundRecord& row);
  void SendOrder(NodeId to, analysis::RoundRecord& row);
  void ArmDeadline();
  void OnDeadline();
  RoundOrder OrderFor(NodeId to, Member& peer);
  void OnLate(NodeId from, const Offer& m, bool usable);
  void Accept(NodeId from, const Offer& m, std::span<const double> squares);
  void MaybeCloseRound();
  void CloseRound();
  void Publish(const WorldUpdate& update);
  void CountDown(const Counted& before, analysis::RoundRecord& record);

  void Refuse(NodeId to, RejectReason reason, std::int32_t round, std::string detail);
  void Send(NodeId to, Message message);
  void Event(NodeId node, std::string kind, std::string detail);
  double NowSeconds() const;
  double WaitSeconds(const Member& peer) const;
  bool AllStepsDone() const { return committed_round_ >= schedule_.rounds(); }
  sim::Time CodingTime(std::int64_t bytes) const;
  Member& member(NodeId node) { return members_[static_cast<std::size_t>(node)]; }

  CoordinatorConfig config_;
  const Allocation first_allocation_;
  Allocation configured_;  // of the round at hand, if nobody is lost
  Allocation allocation_;  // of the round at hand
  std::shared_ptr<const BlockTable> table_;
  Schedule schedule_;
  Publication published_;
  WorldUpdater updater_;
  std::string initial_hash_;
  Runtime& runtime_;
  analysis::Recorder& recorder_;
  OnPublished on_published_;

  std::vector<Member> members_;
  std::int32_t committed_round_ = 0;
  std::int64_t committed_step_ = 0;
  std::int64_t up_so_far_ = 0;
  Counted down_so_far_;

  std::map<NodeId, std::vector<BlockId>> handed_over_;  // blocks of lost nodes, by who trains them

  bool begun_ = false;  // the first round since this coordinator is there
  bool resumed_ = false;

  // The round at hand.
  RoundOrder order_;
  std::unique_ptr<Reduction> reduction_;  // null before the first and after the last round
  bool closing_ = false;                  // being reduced
  bool deadline_passed_ = false;
  std::optional<Runtime::TimerId> deadline_timer_;
  bool awaited_ = false;                         // without a usable result: who may bring one
  std::optional<Runtime::TimerId> await_timer_;  // still
  std::vector<bool> settled_;                    // [node]: added to or excluded from the reduction
  std::vector<bool> counted_;                    // [node]: among the round's members
  std::int64_t decoded_bytes_ = 0;               // of the values in offers that came as codes
  // Late results that came while it was closing, with their sizes.
  std::vector<std::tuple<NodeId, Offer, Evidence>> for_next_;
  RoundLog log_;
  std::string last_rejection_;
  bool distrusted_ = false;  // some result of this round

  Trust trust_;
  std::map<NodeId, Looked> looked_;       // of the round at hand
  std::optional<double> published_loss_;  // on the same held-out text
  std::uint64_t trials_ = 0;              // so far
  sim::Time trials_end_{0};               // of those that were charged so far
};

}  // namespace spes::trainer
