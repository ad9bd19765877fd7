#include "sim/fluid/fluid_engine.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace spes::sim {
namespace {

constexpr auto kWallSlice = std::chrono::milliseconds(100);
// A window that grows does so in steps of this factor, or of a segment where that is more.
constexpr double kStep = 1.2;
// A flow that starts in an outage looks so often whether it is over.
constexpr Time kProbe = std::chrono::milliseconds(200);
constexpr double kUnlimited = MaxMin::kInfinity;

double Ns(Time t) { return static_cast<double>(t.count()); }

}  // namespace

FluidEngine::FluidEngine(std::shared_ptr<const LinkGraph> graph, const TcpConfig& tcp,
                         std::unique_ptr<Transport> transport)
    : graph_(std::move(graph)),
      stall_timeout_(tcp.stall_timeout),
      transport_(std::move(transport)),
      control_(graph_->links().size(), tcp.stall_timeout),
      bulk_(graph_->links().size(), tcp.stall_timeout),
      links_(*graph_, transport_->efficiency(), &control_, &bulk_),
      overflow_pending_(graph_->links().size(), false),
      usage_(graph_->links().size()) {}

void FluidEngine::Prepare(int from, int to, int streams) {
  CheckFlow({.from = from, .to = to, .streams = streams}, *graph_);
  met_.insert(std::minmax(from, to));
}

FlowId FluidEngine::Start(const Flow& flow, OnDone done) {
  CheckFlow(flow, *graph_);
  int slot = static_cast<int>(active_.size());
  if (free_slots_.empty()) {
    active_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  const FlowId id = next_id_++;
  slot_of_.emplace(id, slot);
  Active& active = active_[slot];
  active = {};
  active.result = {.id = id, .flow = flow, .start = now_, .rtt_min = {}, .rtt_mean = {}};
  active.done = std::move(done);
  const bool met = !met_.insert(std::minmax(flow.from, flow.to)).second;
  active.course = transport_->Plan(flow, now_, met);
  active.route = &graph_->Route(flow.from, flow.to);
  active.control = transport_->priorities() && flow.traffic_class == TrafficClass::kControl;
  links_.Use(*active.route, now_);
  wakes_.Set(slot, now_ + active.course.latency);
  return id;
}

void FluidEngine::Cancel(FlowId id) {
  const auto found = slot_of_.find(id);
  if (found == slot_of_.end()) return;
  const int slot = found->second;
  End(slot, FlowOutcome::kCancelled,
      static_cast<std::int64_t>(std::floor(Delivered(active_[slot]) + 1e-6)));
}

std::optional<Time> FluidEngine::NextEvent() const {
  if (!ended_.empty()) return now_;
  if (empty()) return std::nullopt;
  const bool settled = !control_.outdated() && !bulk_.outdated();
  return settled ? NextTime() : now_;
}

Time FluidEngine::NextTime() const {
  return std::min({wakes_.next(), overflows_.next(), control_.next(), bulk_.next(), links_.next()});
}

Time FluidEngine::AdvanceTo(Time t) {
  if (t < now_) throw std::logic_error("virtual time cannot go back");
  const auto until = std::chrono::steady_clock::now() + kWallSlice;
  for (int events = 1;; ++events) {
    if (!ended_.empty()) {
      Report();
      if (now_ < t) return now_;
      continue;
    }
    Settle();
    const Time next = NextTime();
    if (empty() || next > t) {
      if (t != kNever) now_ = t;
      return now_;
    }
    now_ = next;
    Happen();
    if (events % 256 == 0 && std::chrono::steady_clock::now() > until) return now_;
  }
}

// What is due at now_.
void FluidEngine::Happen() {
  for (const int link : links_.Change(now_)) Replan(link);
  std::vector<int> drained, stalled;
  for (const bool control : {true, false}) {
    drained.clear();
    stalled.clear();
    (control ? control_ : bulk_).Report(now_, &drained, &stalled);
    const std::vector<int>& slots = control ? control_slot_ : bulk_slot_;
    for (const int number : drained) Advance(slots[number]);
    for (const int number : stalled) {
      const int slot = slots[number];
      End(slot, FlowOutcome::kStalled, static_cast<std::int64_t>(Delivered(active_[slot])));
    }
  }
  while (overflows_.next() <= now_) Overflow(overflows_.first());
  while (wakes_.next() <= now_) Wake(wakes_.first());
}

void FluidEngine::Wake(int slot) {
  Active& active = active_[slot];
  wakes_.Clear(slot);
  switch (active.phase) {
    case Phase::kLatency:
      return Begin(slot);
    case Phase::kSlowStart:
      return NextRound(slot);
    case Phase::kSteady:
      SetWindow(slot, Grown(active));
      AwaitGrowth(slot);
  }
}

// The first byte is there.
void FluidEngine::Begin(int slot) {
  Active& active = active_[slot];
  const auto bytes = static_cast<double>(active.result.flow.bytes);
  if (bytes == 0) return End(slot, FlowOutcome::kDone, 0);
  active.began = now_;
  active.phase = Phase::kSteady;
  active.window = kUnlimited;
  if (transport_->windows() && active.course.window < bytes) {
    active.phase = Phase::kSlowStart;
    active.window = active.course.window;
    active.since = now_;
    wakes_.Set(slot, now_ + Time(std::llround(active.course.rtt_ns)));
    if (!active.control) slow_starting_.insert(slot);
  }
  if (active.control) draining_control_.insert(slot);
  active.number = DrainsOf(active).Add(*active.route, active.course.weight, Cap(active),
                                       active.course.stages.front().until, active.result.start);
  std::vector<int>& slots = active.control ? control_slot_ : bulk_slot_;
  if (static_cast<std::size_t>(active.number) >= slots.size()) slots.resize(active.number + 1);
  slots[active.number] = slot;
}

double FluidEngine::Cap(const Active& active) const {
  return std::min(active.course.stages[active.stage].cap, active.window / active.course.rtt_ns);
}

// With the time in the queue of the full link that holds the flow, if one does.
Time FluidEngine::RoundTrip(const Active& active) const {
  return Time(std::llround(active.course.rtt_ns + QueuedNs(active)));
}

void FluidEngine::SetWindow(int slot, double window) {
  Active& active = active_[slot];
  active.window = window;
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
  if (!overshoots && rate < active.window / active.course.rtt_ns * (1 - 1e-9)) {
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
  SetWindow(slot, 2 * active.window);
  active.since = now_;
  wakes_.Set(slot, now_ + RoundTrip(active));
  doubled_.push_back(slot);
}

void FluidEngine::StopSlowStart(int slot, double window) {
  Active& active = active_[slot];
  active.phase = Phase::kSteady;
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
    overflows_.Set(link, now_ + Time(std::llround(transport_->OvershootNs(links_.WaitNs(link)))));
  }
}

// The queue is full, unless flows have ended since: all that double hear of it.
void FluidEngine::Overflow(int link) {
  overflows_.Clear(link);
  overflow_pending_[link] = false;
  if (!bulk_.shares().full(link)) return;
  const std::vector<int> slots(slow_starting_.begin(), slow_starting_.end());
  for (const int slot : slots) {
    const Active& active = active_[slot];
    if (!Crosses(active, link)) continue;
    // In the course of a round the window goes from half of what the round drains to all of it.
    const double part = Ns(now_ - active.since) / active.course.rtt_ns;
    const double window = active.window * std::exp2(std::min(1.0, part) - 1);
    StopSlowStart(slot, transport_->AfterOvershoot(window));
  }
}

bool FluidEngine::Crosses(const Active& active, int link) const {
  return std::ranges::count(*active.route, link) > 0;
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
    const bool holds = bulk_.shares().capped(number) &&
                       bulk_.shares().Rate(number) >= active.window / active.course.rtt_ns;
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
  const double ns = transport_->GrowNs(active.course, active.anchor, Grown(active));
  wakes_.Set(slot, std::max(now_, active.since + Time(std::llround(std::min(ns, 1e17)))));
}

// The flow has come to the end of its stage.
void FluidEngine::Advance(int slot) {
  Active& active = active_[slot];
  if (active.stage + 1 == active.course.stages.size()) {
    return End(slot, FlowOutcome::kDone, active.result.flow.bytes);
  }
  const double before = active.course.stages[active.stage].until;
  const double until = active.course.stages[++active.stage].until;
  if (active.phase == Phase::kSlowStart) StopSlowStart(slot, kUnlimited);  // by a loss
  DrainsOf(active).Renew(active.number, active.course.weight, Cap(active), until - before, now_);
}

double FluidEngine::Delivered(const Active& active) const {
  if (active.phase == Phase::kLatency) return 0;
  const double left = DrainsOf(active).Left(active.number, now_);
  return std::max(0.0, active.course.stages[active.stage].until - left);
}

// What a packet of the flow waits in the queue of the full link that holds it, if one does.
double FluidEngine::QueuedNs(const Active& active) const {
  const MaxMin& shares = DrainsOf(active).shares();
  int full = -1;
  if (!shares.capped(active.number)) {
    full = shares.bottleneck(shares.group(active.number));
  } else {
    const double rate = shares.Rate(active.number);
    for (const int link : *active.route) {
      if (shares.count(link) == 1 && shares.capacity(link) <= rate) full = link;
    }
  }
  return full < 0 ? 0 : transport_->Queued(links_.WaitNs(full));
}

// The same on average, as if it had been so since the flow began to drain.
double FluidEngine::MeanQueuedNs(const Active& active) const {
  if (active.phase == Phase::kLatency || now_ == active.result.start) return 0;
  return QueuedNs(active) * Ns(now_ - active.began) / Ns(now_ - active.result.start);
}

void FluidEngine::End(int slot, FlowOutcome outcome, std::int64_t delivered) {
  Active& active = active_[slot];
  FlowResult result = ResultNow(active, delivered, &usage_);
  result.outcome = outcome;
  links_.Release(*active.route);
  wakes_.Clear(slot);
  if (active.phase != Phase::kLatency) {
    slow_starting_.erase(slot);
    DrainsOf(active).Remove(active.number);
    draining_control_.erase(slot);
  }
  ended_.emplace_back(std::move(active.done), result);
  slot_of_.erase(result.id);
  active.done = nullptr;
  free_slots_.push_back(slot);
}

// Each flow leaves the list before its `done` runs: `done` may start and cancel flows, and throw.
void FluidEngine::Report() {
  while (!ended_.empty()) {
    const auto [done, result] = std::move(ended_.front());
    ended_.pop_front();
    if (done) done(result);
  }
}

void FluidEngine::Settle() {
  UpdateControl();
  for (int pass = 0; bulk_.outdated(); ++pass) {
    bulk_.Update(now_);
    LookAfterWindows();
    if (pass == 0) Weigh();
    AwaitOverflows();
  }
  doubled_.clear();
}

// How a flow competes depends on where: weighs those that have come to meet others at another link.
void FluidEngine::Weigh() {
  for (const int number : bulk_.shares().moved()) {
    Active& active = active_[bulk_slot_[number]];
    const int link = bulk_.shares().bottleneck(bulk_.shares().group(number));
    if (link < 0 || link == active.contended) continue;
    active.contended = link;
    const double weight =
        transport_->Weight(active.result.flow, active.course, links_.WaitNs(link));
    if (weight == active.course.weight) continue;
    active.course.weight = weight;
    bulk_.Renew(number, weight, Cap(active), bulk_.Left(number, now_), now_);
  }
}

// Control flows take what they can get of the links; bulk flows share the rest.
void FluidEngine::UpdateControl() {
  if (!control_.outdated()) return;
  control_.Update(now_);
  std::vector<std::pair<int, double>> taken;
  for (const int slot : draining_control_) {
    const Active& active = active_[slot];
    for (const int link : *active.route) {
      taken.emplace_back(link, control_.shares().Rate(active.number));
    }
  }
  links_.SetTaken(std::move(taken));
}

// The round trip over the link has changed: so have the plans of the flows over it.
void FluidEngine::Replan(int link) {
  for (const auto& [id, slot] : slot_of_) {
    Active& active = active_[slot];
    const Flow& flow = active.result.flow;
    const std::vector<int>& back = graph_->Route(flow.to, flow.from);
    if (!std::ranges::count(*active.route, link) && !std::ranges::count(back, link)) continue;
    const double delivered = Delivered(active);
    active.course = transport_->Plan(flow, now_, true);
    active.contended = -1;
    active.stage = 0;
    while (active.stage + 1 < active.course.stages.size() &&
           active.course.stages[active.stage].until <= delivered) {
      ++active.stage;
    }
    if (active.phase == Phase::kLatency) continue;
    DrainsOf(active).Renew(active.number, active.course.weight, Cap(active),
                           active.course.stages[active.stage].until - delivered, now_);
  }
}

// Fills in what the flow has cost so far, when so much of it has been delivered.
FlowResult FluidEngine::ResultNow(const Active& active, std::int64_t delivered,
                                  std::vector<LinkUsage>* usage) const {
  FlowResult result = active.result;
  result.end = now_;
  result.delivered_bytes = delivered;
  transport_->Count(active.course, MeanQueuedNs(active), &result);
  links_.AddUsage(result, active.course.loss,
                  transport_->AckBytes(result.flow, static_cast<double>(delivered)), usage);
  return result;
}

std::vector<LinkUsage> FluidEngine::Usage() const {
  std::vector<LinkUsage> usage = usage_;
  for (const auto& [id, slot] : slot_of_) {
    const Active& active = active_[slot];
    ResultNow(active, static_cast<std::int64_t>(Delivered(active)), &usage);
  }
  return usage;
}

}  // namespace spes::sim
