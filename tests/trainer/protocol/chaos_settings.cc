#include "tests/trainer/protocol/chaos_settings.h"

#include <fmt/format.h>

#include <cmath>

#include "tests/trainer/protocol/fake_node.h"

namespace spes::trainer {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

void DrawSchedule(Dice& dice, ScheduleConfig& schedule) {
  schedule.every = dice.Int(1, 4);
  schedule.total_steps = schedule.every * dice.Int(2, 5) + dice.Int(0, 2);
  const int kind = dice.Int(0, 5);
  if (kind == 0) {
    schedule.experts_every = schedule.every * 2;
  } else if (kind == 1 && schedule.every > 2) {
    schedule.first = 1;
  } else if (kind >= 4 && schedule.every >= 2) {
    schedule.fragments = kind == 4 ? 2 : 1;
    const int shortest = schedule.every / schedule.fragments;
    if (shortest > 1) schedule.overlap = dice.Int(0, shortest - 1);
  }
}

bool WholeRounds(const ScheduleConfig& schedule) {
  return schedule.fragments == 1 &&
         (schedule.experts_every == 0 || schedule.experts_every == schedule.every);
}

CodecConfig DrawCodec(Dice& dice) {
  CodecConfig codec;
  if (dice.Chance(0.4)) return codec;
  codec.kind = dice.Of<CodecKind>(
      {CodecKind::kRaw, CodecKind::kBf16, CodecKind::kInt8, CodecKind::kInt4, CodecKind::kTopK});
  codec.group = 4;
  codec.keep = 0.3;
  codec.differences = codec.kind == CodecKind::kTopK || dice.Chance(0.5);
  codec.error_feedback = codec.kind != CodecKind::kRaw && dice.Chance(0.6);
  codec.skip_unchanged = codec.differences && dice.Chance(0.3);
  if (dice.Chance(0.2)) codec.zstd = 1;
  return codec;
}

void DrawReduction(Dice& dice, ReductionRule& rule, OuterConfig& outer) {
  rule.kind = dice.Of<ReductionKind>({ReductionKind::kMean, ReductionKind::kTokenMean,
                                      ReductionKind::kOwner, ReductionKind::kTrimmedMean,
                                      ReductionKind::kMedian});
  outer.nesterov = dice.Chance(0.3);
}

void DrawAllocation(Dice& dice, int nodes, bool whole_rounds, CoordinatorConfig& config) {
  AllocationConfig& allocation = config.allocation;
  allocation.kind = dice.Of<AllocationKind>(
      {AllocationKind::kContiguous, AllocationKind::kRoundRobin, AllocationKind::kAll});
  config.moments =
      dice.Of<MomentsRule>({MomentsRule::kKept, MomentsRule::kReset, MomentsRule::kAveraged});
  if (allocation.kind == AllocationKind::kAll) return;
  allocation.replicas = dice.Int(1, nodes);
  if (!whole_rounds || dice.Chance(0.6)) return;
  allocation.rotate_every = dice.Int(1, 2);
  allocation.moments =
      config.moments == MomentsRule::kReset ? RotatedMoments::kReset
      : config.moments == MomentsRule::kAveraged
          ? RotatedMoments::kHandedOver
          : dice.Of<RotatedMoments>(
                {RotatedMoments::kHandedOver, RotatedMoments::kReset, RotatedMoments::kKept});
}

// When a round ends.
void DrawRule(Dice& dice, int nodes, bool whole_rounds, CoordinatorConfig& config) {
  const int rule = dice.Int(0, 3);
  if (rule == 2) config.quorum = dice.Int(1, nodes);
  if (rule == 3) config.deadline = dice.Time(milliseconds(300), seconds(5));
  if (rule >= 2 && whole_rounds && config.allocation.rotate_every == 0 && dice.Chance(0.5)) {
    config.late = LateRule::kNextRound;
    config.staleness_power = dice.Of<double>({0, 0.5, 1});
  }
  const int patience = dice.Int(0, 5);
  config.patience = patience == 0   ? seconds(0)
                    : patience <= 2 ? dice.Time(milliseconds(50), seconds(5))
                                    : seconds(1000);
  if (dice.Chance(0.4)) config.orphans = OrphanRule::kHandedOver;
}

void MakeDataParallel(CoordinatorConfig& config, PeerConfig& peer) {
  config.schedule.every = 1;
  config.schedule.experts_every = config.schedule.first = config.schedule.overlap = 0;
  config.schedule.fragments = 1;
  config.allocation = {};
  config.allocation.kind = AllocationKind::kAll;
  config.moments = MomentsRule::kKept;
  config.update.outer_shared = config.update.outer_experts = {};
  OptimizerConfig optimizer;
  optimizer.decay_steps = config.schedule.total_steps;
  config.update.gradients = optimizer;
  peer.gradients = true;
  if (peer.codec.differences) peer.codec = {};
}

}  // namespace

sim::Time Dice::Time(sim::Time low, sim::Time high) {
  return sim::FromSeconds(
      std::exp(Real(std::log(sim::ToSeconds(low)), std::log(sim::ToSeconds(high)))));
}

ChaosSettings DrawSettings(std::uint64_t seed) {
  Dice dice(Key(seed, 1));
  ChaosSettings s;
  s.seed = seed;
  s.nodes = dice.Int(2, 5);
  s.table = MakeTinyTable(dice.Int(1, 2), s.nodes * dice.Int(1, 2));
  CoordinatorConfig& config = s.coordinator;
  PeerConfig& peer = s.peer;
  DrawSchedule(dice, config.schedule);
  peer.codec = DrawCodec(dice);
  config.update.codec = DrawCodec(dice);
  DrawReduction(dice, config.reduction.shared, config.update.outer_shared);
  DrawReduction(dice, config.reduction.experts, config.update.outer_experts);
  const bool whole = WholeRounds(config.schedule);
  DrawAllocation(dice, s.nodes, whole, config);
  DrawRule(dice, s.nodes, whole, config);
  if (config.schedule.overlap > 0 && config.allocation.rotate_every == 0 && dice.Chance(0.3)) {
    peer.keep = 0.25;
  }
  if (dice.Chance(0.1)) MakeDataParallel(config, peer);
  if (config.schedule.fragments == 1 && dice.Chance(0.3)) {
    config.update.merge = {.interval = 3, .alpha = 0.3, .length = 30, .donors = 2};
  }
  config.scenario_hash = peer.scenario_hash = "same";
  config.offered = peer.codec;
  peer.published = config.update.codec;
  peer.moments = config.moments;
  peer.keep_moments = config.allocation.moments == RotatedMoments::kKept;
  const sim::Time a_byte = dice.Chance(0.5) ? sim::Time{0} : sim::Time{20'000};
  config.coding_time = peer.coding_time = [a_byte](std::int64_t bytes) { return bytes * a_byte; };
  peer.rejoin_after = dice.Time(milliseconds(20), seconds(2));
  for (int n = 0; n < s.nodes; ++n) s.speeds.push_back(dice.Real(0.5, 2));
  s.latency = dice.Time(milliseconds(1), milliseconds(200));
  s.runtime.detection = dice.Time(milliseconds(1), seconds(1));
  s.runtime.after_write = dice.Chance(0.5) ? sim::Time{0} : dice.Time(milliseconds(1), seconds(1));
  s.runtime.replaces_silently = dice.Chance(0.3);
  s.wire = dice.Chance(0.5);
  peer.decodes = s.wire;
  return s;
}

bool ChaosSettings::WaitsForAll() const {
  return coordinator.quorum == 0 && !coordinator.deadline && coordinator.patience >= seconds(1000);
}

bool ChaosSettings::AdoptsAll() const {
  return WholeRounds(coordinator.schedule) && coordinator.schedule.overlap == 0 && peer.keep == 0;
}

std::string ChaosSettings::Text() const {
  const auto codec = [](const CodecConfig& c) {
    return fmt::format("{}{}{}{}{}", static_cast<int>(c.kind), c.differences ? " differences" : "",
                       c.error_feedback ? " feedback" : "", c.skip_unchanged ? " skip" : "",
                       c.zstd > 0 ? " zstd" : "");
  };
  const CoordinatorConfig& c = coordinator;
  const ScheduleConfig& h = c.schedule;
  return fmt::format(
      "seed {}: {} nodes, {} blocks; steps {} every {} experts {} first {} fragments {} overlap "
      "{}; allocation {} replicas {} rotate {} ({}); reduction {} {}, outer {} {}, merge {}, "
      "gradients {}; moments {}; codecs up {} down {} wire {}; quorum {} deadline {} late {} ^{} "
      "patience {} orphans {}; keep {}; latency {} detection {} after write {} rejoin {} silent {}",
      seed, nodes, table->size(), h.total_steps, h.every, h.experts_every, h.first, h.fragments,
      h.overlap, static_cast<int>(c.allocation.kind), c.allocation.replicas,
      c.allocation.rotate_every, static_cast<int>(c.allocation.moments),
      static_cast<int>(c.reduction.shared.kind), static_cast<int>(c.reduction.experts.kind),
      c.update.outer_shared.nesterov, c.update.outer_experts.nesterov, c.update.merge.interval,
      c.update.gradients.has_value(), static_cast<int>(c.moments), codec(peer.codec),
      codec(c.update.codec), wire, c.quorum,
      c.deadline ? sim::FormatDuration(*c.deadline, 3) : "none", static_cast<int>(c.late),
      c.staleness_power, sim::FormatDuration(c.patience, 3), static_cast<int>(c.orphans), peer.keep,
      sim::FormatDuration(latency, 3), sim::FormatDuration(runtime.detection, 3),
      sim::FormatDuration(runtime.after_write, 3), sim::FormatDuration(peer.rejoin_after, 3),
      runtime.replaces_silently);
}

std::vector<Fault> DrawFaults(const ChaosSettings& settings, sim::Time length) {
  Dice dice(Key(settings.seed, 2));
  FaultPlanConfig config;
  config.seed = settings.seed;
  config.until = sim::FromSeconds(1.3 * sim::ToSeconds(length));
  for (int left = dice.Int(1, 4); left > 0; --left) {
    RandomFaults faults;
    faults.kind = static_cast<FaultKind>(dice.Int(0, kFaultKinds - 1));
    const bool ends = faults.kind == FaultKind::kCrash || faults.kind == FaultKind::kFullDisk;
    for (NodeId id = ends ? kCoordinator : 0; id < settings.nodes; ++id) {
      if (dice.Chance(0.5)) faults.nodes.push_back(id);
    }
    faults.mean_between = sim::FromSeconds(sim::ToSeconds(length) * dice.Real(0.2, 3));
    if (faults.kind != FaultKind::kCorrupt) {
      faults.mean_duration = dice.Time(milliseconds(5), seconds(3));
    }
    if (faults.kind == FaultKind::kSlow) faults.factor = dice.Real(0.3, 8);
    if (faults.kind == FaultKind::kClockJump) faults.factor = dice.Chance(0.5) ? -100 : 100;
    config.random.push_back(std::move(faults));
  }
  if (dice.Chance(0.05)) {  // one that does not come back
    config.scripted.push_back({dice.Time(milliseconds(1), length), FaultKind::kCrash,
                               dice.Int(0, settings.nodes - 1), sim::kNever, 1});
  }
  return MakeFaultPlan(config, settings.nodes);
}

std::string Text(const std::vector<Fault>& plan) {
  std::string text;
  for (const Fault& fault : plan) {
    text += fmt::format("  {:10.6f} {} {} for {:.6f} s, factor {}\n", sim::ToSeconds(fault.at),
                        Name(fault.kind), fault.node, sim::ToSeconds(fault.duration), fault.factor);
  }
  return text;
}

}  // namespace spes::trainer
