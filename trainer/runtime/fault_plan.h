// What goes wrong in a simulated run, and when: settled before it begins.
#pragma once

#include <cstdint>
#include <string_view>
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
  std::vector<Fault> scripted;
  std::vector<RandomFaults> random;
  sim::Time until{0};  // random ones begin before
  std::uint64_t seed = 1;
};

// Throws std::invalid_argument, one line, on a node that is not in a run of `nodes` nodes or cannot
// have faults of this kind, on a time or duration that is negative, or 0 where the kind lasts, and
// on a factor that is not positive of kSlow, 0 of kClockJump, or not finite.
void Validate(const Fault& fault, int nodes);
// Likewise; also on a mean time between faults that is not positive.
void Validate(const RandomFaults& random, int nodes);

// All faults by time, those at the same time in the order of the configuration. The same
// configuration gives the same plan; the numbers of each item of `random` and node are drawn apart,
// so that nothing else changes them. Validates; also throws std::invalid_argument on more than a
// million faults.
std::vector<Fault> MakeFaultPlan(const FaultPlanConfig& config, int nodes);

}  // namespace spes::trainer
