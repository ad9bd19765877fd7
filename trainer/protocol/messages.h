// What a coordinator and its peers say to each other. Plain values: no sockets, no clocks, no
// LibTorch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "trainer/node.h"
#include "trainer/sync/shared_code.h"
#include "trainer/sync/world.h"

namespace spes::trainer {

using NodeId = std::int32_t;
inline constexpr NodeId kCoordinator = -1;

// Which round, and which steps it has. Rounds and steps are the coordinator's count, from 1, never
// the peer's own.
struct RoundSpan {
  std::int32_t round = 0;
  std::int64_t first_step = 0;
  std::int32_t steps = 0;
  std::int64_t last_step() const { return first_step + steps - 1; }
  bool operator==(const RoundSpan&) const = default;
};

// Which blocks' optimiser moments an offer carries.
enum class MomentsSent { kNone, kExperts, kAll };

// What a peer is to do next: train the steps, then offer blocks.
struct RoundOrder {
  RoundSpan span = {};
  // Steps that follow the round's and may be trained while its result is on its way.
  std::int32_t ahead = 0;
  MomentsSent moments = MomentsSent::kNone;  // in the offer
  // What to offer, ascending; nothing: all that the peer trains.
  std::optional<std::vector<BlockId>> blocks = {};
  // What the peer trains from this round on, where that changes.
  std::optional<std::vector<BlockId>> trains = {};
};

// Peer: I want to take part. `world_hash`: of the model that the peer starts from; empty where it
// holds nothing that was published.
struct Join {
  std::string scenario_hash;
  std::string world_hash;
  std::uint64_t incarnation = 0;   // another number each time the peer's process begins anew
  std::uint64_t run = 0;           // whose rounds it has taken part in; 0: none yet
  std::int32_t round = 0;          // the last one that it has trained, in that run
  std::vector<Version> held = {};  // [block]: the published value it has, −1: none; or empty: none
  std::vector<BlockId> trains = {};  // from its last order on; empty: as the first round has it
};

// A block's published value. With a code (trainer/sync/codec.h), that is what goes over the wire in
// place of the values, and `data` is what it is read back as: within one
// process nobody has to decode it; over a wire it is null and the receiver does.
struct SentBlock {
  BlockId id = 0;
  Version version = 0;
  SharedBuffer data;
  SharedCode code = nullptr;
  SharedMoments moments = nullptr;  // to go on with, where the receiver trains the block
};

// Coordinator: you are in; adopt `blocks` (those whose published value you lack) and do `order`.
struct Admit {
  std::vector<SentBlock> blocks;
  RoundOrder order;
  std::uint64_t run = 0;          // the coordinator's; see coordinator_state.h
  bool reset_optimizer = false;   // as in Update, which may not have come
  std::int64_t steps_done = 0;    // by this node in this run, for the position in its data
  std::uint64_t incarnation = 0;  // of the Join that this answers
  bool counted = false;           // as in Update, which may not have come
};

// A block as a peer has trained it; with a code, what that is read back as (null while it has only
// come over a wire).
struct OfferedBlock {
  BlockId id = 0;
  std::uint64_t checksum = 0;  // BlockChecksum of the values as they left the peer
  SharedBuffer data;
  SharedCode code = nullptr;
  SharedMoments moments = nullptr;
};

// Peer: the result of an order.
struct Offer {
  RoundSpan span;
  std::int64_t tokens = 0;
  double start_s = 0, compute_s = 0;        // virtual, the peer's clock
  std::vector<analysis::StepRecord> steps;  // round, node and virtual_s filled in
  RoutingCounts routing;
  std::vector<OfferedBlock> blocks;
};

enum class RejectReason {
  kScenario,    // another scenario, or a node that is not in it
  kCorrupt,     // a checksum does not match: send the offer again
  kNotFinite,   // a parameter is not finite
  kUnexpected,  // blocks, sizes or rounds that are not what was ordered
  kNotMember,   // the coordinator has given this peer up: join again
  kOtherRun,    // its state is of another run than the coordinator's
  kDistrusted,  // its update is not like the others', see trust.h
};
std::string_view Name(RejectReason reason);

// Coordinator: what you sent is not taken.
struct Reject {
  RejectReason reason = RejectReason::kUnexpected;
  std::int32_t round = 0;
  std::string detail;  // one line
};

// Coordinator: round `version` is published; adopt `blocks`, in ascending order. A block whose
// published value is what the peer offered is not among them.
struct Update {
  Version version = 0;
  double waited_s = 0;  // from the offer's arrival to this message, the coordinator's clock
  bool reset_optimizer = false;  // the peer's last result was not finite: forget how it came to be
  std::vector<SentBlock> blocks;
  std::optional<RoundOrder> next;  // nothing: the run is over
  // The peer's last result was part of a round, its own or, where late ones count, a later one.
  bool counted = false;
};

// Peer: the update of this round is adopted. Durations on the peer's clock.
struct Applied {
  Version version = 0;
  double up_s = 0, down_s = 0;
};

// Either side: I am going.
struct Leave {
  std::string reason;
};

using Message = std::variant<Join, Admit, Offer, Reject, Update, Applied, Leave>;

// "join", "offer", …
std::string_view Name(const Message& message);

// The round a message belongs to; 0 where it belongs to none.
std::int32_t RoundOf(const Message& message);

// True for messages that carry parameters.
bool IsBulk(const Message& message);

}  // namespace spes::trainer
