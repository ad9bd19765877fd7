#include "trainer/runtime/fault_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string>

#include "trainer/data/keyed_random.h"

namespace spes::trainer {

namespace {

constexpr std::size_t kMaxFaults = 1'000'000;

void Require(bool holds, const std::string& what) {
  if (!holds) throw std::invalid_argument(what);
}

bool Lasts(FaultKind kind) { return kind != FaultKind::kCorrupt; }

// What a fault and a rate of faults have in common.
void Check(FaultKind kind, NodeId node, double factor, int nodes) {
  const bool of_coordinator = kind == FaultKind::kCrash || kind == FaultKind::kFullDisk;
  Require((node >= 0 && node < nodes) || (node == kCoordinator && of_coordinator),
          node == kCoordinator
              ? fmt::format("the coordinator has no faults of kind {}", Name(kind))
              : fmt::format("there is no node {} in a run of {} nodes", node, nodes));
  Require(std::isfinite(factor), "a factor must be finite");
  Require(kind != FaultKind::kSlow || factor > 0,
          fmt::format("a factor of {}: of slow it must be positive", factor));
  Require(kind != FaultKind::kClockJump || factor != 0, "a clock jump by a factor of 0 is none");
}

// Exponentially distributed, at least 1 ns.
sim::Time Draw(sim::Time mean, std::uint64_t key, std::uint64_t counter) {
  const double x = -std::log1p(-Uniform(key, counter)) * sim::ToSeconds(mean);
  return std::max(sim::Time{1}, sim::FromSeconds(x));
}

}  // namespace

std::string_view Name(FaultKind kind) {
  static constexpr std::array<std::string_view, kFaultKinds> names = {
      "crash",   "slow",   "outage",  "half_open_up", "half_open_down",
      "corrupt", "repeat", "reorder", "full_disk",    "clock_jump"};
  return names[static_cast<std::size_t>(kind)];
}

void Validate(const Fault& fault, int nodes) {
  Check(fault.kind, fault.node, fault.factor, nodes);
  Require(fault.at >= sim::Time{0}, "a fault before the run");
  const bool zero = fault.duration == sim::Time{0};
  Require(fault.duration >= sim::Time{0} && (!zero || !Lasts(fault.kind)),
          fmt::format("a fault of kind {} needs a duration", Name(fault.kind)));
  Require(fault.duration != sim::kNever || fault.kind == FaultKind::kCrash,
          fmt::format("a fault of kind {} must end", Name(fault.kind)));
}

void Validate(const RandomFaults& random, int nodes) {
  for (const NodeId node : random.nodes) Check(random.kind, node, random.factor, nodes);
  Require(random.mean_between > sim::Time{0}, "faults need a mean time between them");
  Require(random.mean_duration >= sim::Time{0} &&
              (random.mean_duration > sim::Time{0} || !Lasts(random.kind)),
          fmt::format("faults of kind {} need a mean duration", Name(random.kind)));
}

std::vector<Fault> MakeFaultPlan(const FaultPlanConfig& config, int nodes) {
  std::vector<Fault> plan = config.scripted;
  for (const Fault& fault : plan) Validate(fault, nodes);
  for (std::size_t i = 0; i < config.random.size(); ++i) {
    const RandomFaults& random = config.random[i];
    Validate(random, nodes);
    for (const NodeId node : random.nodes) {
      const std::uint64_t key = Key(config.seed, 0x6661756c74u, i, node);
      std::uint64_t drawn = 0;
      for (sim::Time t{0}; true;) {
        t += Draw(random.mean_between, key, drawn++);
        if (t >= config.until) break;
        Require(plan.size() < kMaxFaults,
                fmt::format("more than a million faults in {}; let them end sooner or be rarer",
                            sim::FormatDuration(config.until)));
        const bool lasts = Lasts(random.kind);
        const sim::Time duration = lasts ? Draw(random.mean_duration, key, drawn++) : sim::Time{0};
        plan.push_back({t, random.kind, node, duration, random.factor});
        t += duration;
      }
    }
  }
  std::stable_sort(plan.begin(), plan.end(),
                   [](const Fault& a, const Fault& b) { return a.at < b.at; });
  return plan;
}

}  // namespace spes::trainer
