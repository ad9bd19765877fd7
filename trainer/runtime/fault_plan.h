// What goes wrong in a simulated run, and when: settled before it begins.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/units.h"
#include "trainer/protocol/messages.h"

namespace spes::trainer {

enum class FaultKind {
  kCrash,         // the process is gone; it begins anew after `duration`, never where kNever
  kSlow,          // for `duration` a step takes `factor` times as long
  kOutage,        // for `duration` there is no way between the node and the coordinator
  kHalfOpenUp,    // what the node sends vanishes, until after `duration` a time-out notices
  kHalfOpenDown,  // likewise what it is sent
  kCorrupt,       // its next offer arrives damaged
  kRepeat,        // the next message from or to it arrives a second time, `duration` later
  kReorder,       // the next message from or to it is held up for `duration`; others overtake it
  kFullDisk,      // for `duration` nothing can be written: who tries ends, and is begun anew then
  kClockJump,     // its clock jumps by `factor` · `duration`
};
inline constexpr int kFaultKinds = 10;

// "crash", "slow", "outage", "half_open_up", "half_open_down", "corrupt", "repeat", "reorder",
// "full_disk", "clock_jump".
std::string_view Name(FaultKind kind);

struct Fault {
  sim::Time at{0};
  FaultKind kind = FaultKind::kCrash;
  NodeId node = 0;  // kCoordinator: of kCrash and kFullDisk only
  sim::Time duration{0};
  double factor = 1;
  bool operator==(const Fault&) const = default;
};

// Faults of one kind that each of `nodes` has on its own: the times between them and their
// durations are exponentially distributed.
struct RandomFaults {
  FaultKind kind = FaultKind::kCrash;
  std::vector<NodeId> nodes;
  sim::Time mean_between{0};  // from the end of one to the begin of the next
  sim::Time mean_duration{0};
  double factor = 1;
};

struct FaultPlanConfig {
  std::vector<Fault> scripted = {};
  std::vector<RandomFaults> random = {};
  sim::Time until = sim::kNever;  // random ones begin before
  std::uint64_t seed = 1;
};

// Throws std::invalid_argument, one line, on a node that is not in a run of `nodes` nodes or cannot
// have faults of this kind, on a time or duration that is negative, or 0 where the kind lasts, and
// on a factor that is not positive of kSlow, 0 of kClockJump, or not finite.
void Validate(const Fault& fault, int nodes);
// Likewise; also on a mean time between faults that is not positive.
void Validate(const RandomFaults& random, int nodes);

// The faults of a run, one after the other for as long as it lasts. The same configuration gives
// the same faults; the numbers of each item of `random` and node are drawn apart, so that nothing
// else changes them.
class FaultStream {
 public:
  // `start`: of a run that goes on after that time. It begins in the middle of what lasts then;
  // what was over, or came and went at once, does not come again. Validates.
  explicit FaultStream(const FaultPlanConfig& config, int nodes, sim::Time start = sim::Time{0});

  // The next one by time, counted from `start`; those at the same time come in the order of the
  // configuration. Nothing when no more come.
  std::optional<Fault> Next();

  // Whether one of this kind may come.
  bool Brings(FaultKind kind) const;

 private:
  // One item of `random` at one node.
  struct Source {
    RandomFaults random;
    NodeId node = 0;
    std::uint64_t key = 0, drawn = 0;
    sim::Time free{0};  // the last one is over
    Fault next = {};
  };
  std::optional<Fault> NextOfRun();
  void Draw(std::size_t source);

  sim::Time until_;
  std::vector<Fault> scripted_;  // by time
  std::size_t next_scripted_ = 0;
  std::vector<Source> sources_;
  std::set<std::pair<sim::Time, std::size_t>> due_;  // their next ones
  sim::Time start_;
  std::vector<Fault> ahead_;  // what lasts at `start`, and the first after it; the last first
};

// All faults of a stream whose random ones end. Validates; also throws std::invalid_argument on
// more than a million faults.
std::vector<Fault> MakeFaultPlan(const FaultPlanConfig& config, int nodes);

}  // namespace spes::trainer
