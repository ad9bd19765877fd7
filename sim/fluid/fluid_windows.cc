// FluidEngine: how windows start, overshoot, grow and shrink.
#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/fluid/fluid_engine.h"

namespace spes::sim {
namespace {

// A window that grows does so in steps of this factor, or of a segment where that is more.
constexpr double kStep = 1.2;
// A flow that starts in an outage looks so often whether it is over.
constexpr Time kProbe = std::chrono::milliseconds(200);
// A queue that fills is looked at eight times in the time that it takes to cross, and at most so
// often.
constexpr Time kLeastLook = std::chrono::milliseconds(1);

double Ns(Time t) { return static_cast<double>(t.count()); }

}  // namespace

double FluidEngine::Cap(const Active& active) const {
  return active.course.Cap(active.stage, active.window);
}

// Random losses have a course of their own, which says nothing of windows.
bool FluidEngine::Remembers(const Active& active) const {
  return remembers_ && !active.control && !active.result.flow.stranger && active.course.loss == 0;
}

void FluidEngine::StartWindow(int slot) {
  Active& active = active_[slot];
  active.window = active.course.window;
  const auto found = memories_.find({active.result.flow.from, active.result.flow.to});
  if (Remembers(active) && found != memories_.end()) {
    const WarmStart start = AfterIdle(found->second, active.result.start, active.course.window);
    active.window = start.window;
    active.threshold = start.threshold;
  }
  active.reached = active.window;
  active.since = now_;
  active.phase = Phase::kSlowStart;
  wakes_.Set(slot, now_ + Time(std::llround(active.course.rtt_ns)));
  if (!active.control) slow_starting_.insert(slot);
}

void FluidEngine::Remember(const Active& active, FlowOutcome outcome) {
  if (!Remembers(active) || active.reached == 0) return;
  const auto at = std::pair(active.result.flow.from, active.result.flow.to);
  memories_.erase(at);
  if (outcome != FlowOutcome::kDone) return;
  memories_[at] = {.window = active.reached,
                   .threshold = active.threshold,
                   .end = now_,
                   .timeout = transport_->Timeout(active.course)};
}

// With the time in the queue of the full link that holds the flow, if one does.
Time FluidEngine::RoundTrip(const Active& active) const {
  return Time(std::llround(active.course.rtt_ns + QueuedNs(active)));
}

void FluidEngine::SetWindow(int slot, double window) {
  Active& active = active_[slot];
  active.window = window;
  if (window < kUnlimited) active.reached = window;
  Drains& drains = DrainsOf(active);
  drains.Renew(active.number, active.course.weight, Cap(active), drains.Left(active.number, now_),
               now_);
}

// A round trip of slow start is over. Within it the flow drains a window, unless its share is less.
void FluidEngine::NextRound(int slot) {
  Active& active = active_[slot];
  Drains& drains = DrainsOf(active);
  const double rate = drains.shares().Rate(active.number);
  if (rate == 0) {
    wakes_.Set(slot, now_ + kProbe);
    return;
  }
  const bool overshoots =
      std::ranges::any_of(*active.route, [this](int link) { return overflow_pending_[link]; });
  if (!overshoots && rate < Cap(active) * (1 - 1e-9)) {
    // It fills its share, and the queue in front of the link.
    StopSlowStart(slot, rate * (active.course.rtt_ns + QueuedNs(active)));
    return;
  }
  const double left = static_cast<double>(active.result.flow.bytes) - Delivered(active);
  if (left <= 2 * active.window) {
    // The rest leaves in one go.
    StopSlowStart(slot, kUnlimited);
    return;
  }
  if (2 * active.window >= active.threshold) {
    StopSlowStart(slot, std::max(active.window, active.threshold));
    return;
  }
  SetWindow(slot, 2 * active.window);
  active.since = now_;
  wakes_.Set(slot, now_ + RoundTrip(active));
  doubled_.push_back(slot);
}

void FluidEngine::StopSlowStart(int slot, double window) {
  Active& active = active_[slot];
  active.phase = Phase::kSteady;
  if (window < kUnlimited) active.filled = now_;
  active.first = window;
  if (window < kUnlimited) active.threshold = window;
  slow_starting_.erase(slot);
  wakes_.Clear(slot);
  SetWindow(slot, active.control ? kUnlimited : window);
}

// When slow start has filled a link, its queue fills too, while windows double on.
void FluidEngine::AwaitOverflows() {
  if (doubled_.empty()) return;
  for (const int link : bulk_.shares().filled()) {
    if (overflow_pending_[link]) continue;
    const bool doubled = std::ranges::any_of(doubled_, [&](int slot) {
      return slow_starting_.contains(slot) && Crosses(active_[slot], link);
    });
    if (!doubled) continue;
    overflow_pending_[link] = true;
    overflows_.Set(link, now_);
  }
}

// Looks whether the windows over the link come to more than it and its queue hold. If so, all that
// double hear of it.
void FluidEngine::Overflow(int link) {
  overflows_.Clear(link);
  overflow_pending_[link] = false;
  const MaxMin& shares = bulk_.shares();
  if (!shares.full(link)) return;
  const double wait = links_.WaitNs(link);
  double wanted = 0;
  std::vector<std::pair<int, double>> doubling;  // slot, window
  for (const int slot : BulkOver(link)) {
    const Active& active = active_[slot];
    if (active.phase != Phase::kSlowStart) {
      wanted += shares.Rate(active.number);
      continue;
    }
    // In the course of a round the window goes from half of what the round drains to all of it.
    const double part = Ns(now_ - active.since) / active.course.rtt_ns;
    const double window = active.window * std::exp2(std::min(1.0, part) - 1);
    doubling.emplace_back(slot, window);
    double rate = window / (active.course.rtt_ns + wait);
    for (const int other : *active.route) {
      if (shares.count(other) == 1) rate = std::min(rate, shares.capacity(other));
    }
    wanted += rate;
  }
  if (doubling.empty()) return;
  if (wanted <= shares.capacity(link)) {
    overflow_pending_[link] = true;
    overflows_.Set(link, now_ + std::max(kLeastLook, Time(std::llround(wait / 8))));
    return;
  }
  const double fits = shares.capacity(link) / wanted;
  for (const auto& [slot, window] : doubling) {
    StopSlowStart(slot, transport_->AfterOvershoot(window * fits));
  }
}

double FluidEngine::Grown(const Active& active) const {
  return std::max(kStep * active.window, active.window + active.course.increment);
}

// Windows grow while they, and not the links, hold their flows.
void FluidEngine::LookAfterWindows() {
  for (const int number : bulk_.shares().moved()) {
    const int slot = bulk_slot_[number];
    Active& active = active_[slot];
    if (active.phase != Phase::kSteady || active.window == kUnlimited) continue;
    const bool holds = bulk_.shares().capped(number) && bulk_.shares().Rate(number) >= Cap(active);
    if (!holds) {
      wakes_.Clear(slot);
      active.grows = false;
    } else if (!active.grows) {
      active.grows = true;
      active.anchor = active.window;
      active.since = now_;
      AwaitGrowth(slot);
    }
  }
}

void FluidEngine::AwaitGrowth(int slot) {
  const Active& active = active_[slot];
  const double ns = transport_->GrowNs(active.course, active.anchor, Grown(active), active.first);
  wakes_.Set(slot, std::max(now_, active.since + Time(std::llround(std::min(ns, 1e17)))));
}

// The full link that holds the flow; -1 where none does.
int FluidEngine::FullLink(const Active& active) const {
  const MaxMin& shares = DrainsOf(active).shares();
  if (!shares.capped(active.number)) return shares.bottleneck(shares.group(active.number));
  const double rate = shares.Rate(active.number);
  for (const int link : *active.route) {
    if (shares.count(link) == 1 && shares.capacity(link) <= rate) return link;
  }
  return -1;
}

// What a packet of the flow waits there.
double FluidEngine::QueuedNs(const Active& active) const {
  const int link = FullLink(active);
  return link < 0 ? 0 : transport_->Queued(links_.WaitNs(link));
}

// The same on average, as if it had been so since the flow filled its share.
double FluidEngine::MeanQueuedNs(const Active& active) const {
  if (!active.filled) return 0;
  return QueuedNs(active) * Ns(now_ - *active.filled) / Ns(now_ - active.result.start);
}

void FluidEngine::Shrink(int slot, double window) {
  active_[slot].first = 0;
  SetWindow(slot, window);
}

// What is under way on links that have lost capacity no longer fits.
void FluidEngine::ShrinkWindows() {
  for (const int link : narrowed_) {
    for (const int slot : BulkOver(link)) {
      const Active& active = active_[slot];
      if (active.phase != Phase::kSteady || active.window == kUnlimited) continue;
      if (FullLink(active) != link) continue;
      const double rate = bulk_.shares().Rate(active.number);
      const double fits = rate * (active.course.rtt_ns + links_.WaitNs(link));
      Shrink(slot, transport_->AfterNarrowing(active.window, fits));
    }
  }
  narrowed_.clear();
}

}  // namespace spes::sim
