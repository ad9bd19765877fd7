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

// What remains, at `now`, of one that began before; nothing where it is over or came and went.
std::optional<Fault> Remainder(Fault fault, sim::Time now) {
  const bool lasts = fault.kind == FaultKind::kCrash || fault.kind == FaultKind::kSlow ||
                     fault.kind == FaultKind::kOutage || fault.kind == FaultKind::kFullDisk;
  if (!lasts) return std::nullopt;
  if (fault.duration != sim::kNever) {
    if (now - fault.at >= fault.duration) return std::nullopt;
    fault.duration -= now - fault.at;
  }
  fault.at = now;
  return fault;
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

FaultStream::FaultStream(const FaultPlanConfig& config, int nodes, sim::Time start)
    : until_(config.until), scripted_(config.scripted), start_(start) {
  for (const Fault& fault : config.scripted) Validate(fault, nodes);
  for (const RandomFaults& random : config.random) Validate(random, nodes);
  std::stable_sort(scripted_.begin(), scripted_.end(),
                   [](const Fault& a, const Fault& b) { return a.at < b.at; });
  for (std::size_t i = 0; i < config.random.size(); ++i) {
    for (const NodeId node : config.random[i].nodes) {
      sources_.push_back({config.random[i], node, Key(config.seed, 0x6661756c74u, i, node)});
      Draw(sources_.size() - 1);
    }
  }
  if (start == sim::Time{0}) return;
  auto fault = NextOfRun();
  for (; fault && fault->at < start; fault = NextOfRun()) {
    if (const auto rest = Remainder(*fault, start)) ahead_.push_back(*rest);
  }
  if (fault) ahead_.push_back(*fault);
  std::reverse(ahead_.begin(), ahead_.end());
}

void FaultStream::Draw(std::size_t source) {
  Source& s = sources_[source];
  const sim::Time at = s.free + trainer::Draw(s.random.mean_between, s.key, s.drawn++);
  if (at >= until_) return;
  const sim::Time duration =
      Lasts(s.random.kind) ? trainer::Draw(s.random.mean_duration, s.key, s.drawn++) : sim::Time{0};
  s.next = {at, s.random.kind, s.node, duration, s.random.factor};
  s.free = at + duration;
  due_.insert({at, source});
}

std::optional<Fault> FaultStream::NextOfRun() {
  const bool listed = next_scripted_ < scripted_.size();
  if (listed && (due_.empty() || scripted_[next_scripted_].at <= due_.begin()->first)) {
    return scripted_[next_scripted_++];
  }
  if (due_.empty()) return std::nullopt;
  const std::size_t source = due_.extract(due_.begin()).value().second;
  const Fault fault = sources_[source].next;
  Draw(source);
  return fault;
}

std::optional<Fault> FaultStream::Next() {
  std::optional<Fault> next;
  if (ahead_.empty()) {
    next = NextOfRun();
  } else {
    next = ahead_.back();
    ahead_.pop_back();
  }
  if (next) next->at -= start_;
  return next;
}

bool FaultStream::Brings(FaultKind kind) const {
  const auto is = [kind](const auto& each) { return each.kind == kind; };
  return std::any_of(scripted_.begin(), scripted_.end(), is) ||
         std::any_of(sources_.begin(), sources_.end(),
                     [kind](const Source& s) { return s.random.kind == kind; });
}

std::vector<Fault> MakeFaultPlan(const FaultPlanConfig& config, int nodes) {
  FaultStream stream(config, nodes);
  std::vector<Fault> plan;
  while (auto fault = stream.Next()) {
    Require(plan.size() < kMaxFaults,
            fmt::format("more than a million faults in {}; let them end sooner or be rarer",
                        sim::FormatDuration(config.until)));
    plan.push_back(*fault);
  }
  return plan;
}

}  // namespace spes::trainer
