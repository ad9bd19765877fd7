#include "scenarios/describe_parts.h"

namespace spes::scenarios {

constexpr Limits kFactor = {.min = -100, .max = 100};
constexpr std::string_view kFactorDoc =
    "Of slow: a step takes so many times as long. Of clock_jump: the clock jumps by so many times "
    "the duration, back where it is negative.";

static void OnKind(Visitor& v, trainer::FaultKind& kind) {
  using trainer::FaultKind;
  Names<FaultKind> names;
  for (int k = 0; k < trainer::kFaultKinds; ++k) {
    names.emplace_back(Name(static_cast<FaultKind>(k)), static_cast<FaultKind>(k));
  }
  OneOf<FaultKind>(
      v,
      {"kind",
       "crash: the process is gone and begins anew afterwards from what it wrote down; slow: steps "
       "take `factor` times as long; outage: no way between the node and the coordinator; "
       "half_open_up, half_open_down: what the node sends, or is sent, vanishes until a time-out "
       "after the duration; corrupt: its next result arrives damaged; repeat: its next message "
       "arrives again after the duration; reorder: it is held up for the duration, and others "
       "overtake it; full_disk: a process that writes ends, and begins anew afterwards; "
       "clock_jump: its clock is set to another time."},
      kind, std::move(names));
}

// Static and not in a nameless namespace, where the templates would not find them.
static void Describe(ScriptedFault& fault, Visitor& v) {
  v.OnValue({"at", "When it begins, from the start of the run.", kDuration}, &fault.at);
  OnKind(v, fault.kind);
  v.OnValue({"node", "The node's number; crash and full_disk may befall the `coordinator` too."},
            &fault.node);
  v.OnValue(
      {"duration", "How long it lasts. none: for good, of a node's crash; corrupt lasts no time.",
       kSomeTime},
      &fault.duration);
  v.OnValue({"factor", kFactorDoc, kFactor}, &fault.factor);
}

static void Describe(RandomFault& fault, Visitor& v) {
  OnKind(v, fault.kind);
  v.OnValue({"nodes",
             "Numbers such as 0-3,7, or `coordinator`; each has faults of its own. Empty: all "
             "nodes."},
            &fault.nodes);
  v.OnValue({"mean_between",
             "Mean time from the end of one, or the start of the run, to the next (exponential).",
             kSomeTime},
            &fault.mean_between);
  v.OnValue({"mean_duration", "Mean duration (exponential). none: of corrupt, which lasts no time.",
             kSomeTime},
            &fault.mean_duration);
  v.OnValue({"factor", kFactorDoc, kFactor}, &fault.factor);
}

void Describe(FaultsSection& faults, Visitor& v) {
  Many(v, "scripted", "Faults at given times.", faults.scripted);
  Many(v, "random", "Faults that come again and again, drawn from the run's seed.", faults.random);
  v.OnValue(
      {"detection", "Time until both sides notice that their connection is broken.", kDuration},
      &faults.detection);
  v.OnValue(
      {"give_up_after", "Time in which no round ends after which the run has failed.", kSomeTime},
      &faults.give_up_after);
}

}  // namespace spes::scenarios
