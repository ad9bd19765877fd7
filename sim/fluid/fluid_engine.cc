#include "sim/fluid/fluid_engine.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace spes::sim {
namespace {

constexpr auto kWallSlice = std::chrono::milliseconds(100);

}  // namespace

FluidEngine::FluidEngine(std::shared_ptr<const LinkGraph> graph, const TcpConfig& tcp,
                         std::unique_ptr<Transport> transport)
    : graph_(std::move(graph)),
      stall_timeout_(tcp.stall_timeout),
      transport_(std::move(transport)),
      remembers_(tcp.after_idle == "remembered"),
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
    if (!empty() && next == kNever && t == kNever) {
      throw std::runtime_error("a flow takes longer than the 292 years that virtual time has");
    }
    if (empty() || next == kNever || next > t) {
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
  for (const FluidLinks::Changed& change : links_.Change(now_)) OnChange(change);
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
  active.phase = Phase::kSteady;
  active.window = kUnlimited;
  if (transport_->windows() && active.course.window < bytes) StartWindow(slot);
  if (active.control) draining_control_.insert(slot);
  active.number = DrainsOf(active).Add(*active.route, active.course.weight, Cap(active),
                                       active.course.stages.front().until, active.result.start);
  std::vector<int>& slots = active.control ? control_slot_ : bulk_slot_;
  if (static_cast<std::size_t>(active.number) >= slots.size()) slots.resize(active.number + 1);
  slots[active.number] = slot;
}

bool FluidEngine::Crosses(const Active& active, int link) const {
  return std::ranges::count(*active.route, link) > 0;
}

// The flow has come to the end of its stage.
void FluidEngine::Advance(int slot) {
  Active& active = active_[slot];
  if (active.stage + 1 == active.course.stages.size()) {
    return End(slot, FlowOutcome::kDone, active.result.flow.bytes);
  }
  const double before = active.course.stages[active.stage].until;
  const double until = active.course.stages[++active.stage].until;
  DrainsOf(active).Renew(active.number, active.course.weight, Cap(active), until - before, now_);
}

double FluidEngine::Delivered(const Active& active) const {
  if (active.phase == Phase::kLatency) return 0;
  const double left = DrainsOf(active).Left(active.number, now_);
  return std::max(0.0, active.course.stages[active.stage].until - left);
}

void FluidEngine::End(int slot, FlowOutcome outcome, std::int64_t delivered) {
  Active& active = active_[slot];
  FlowResult result = ResultNow(active, delivered, &usage_);
  result.outcome = outcome;
  Remember(active, outcome);
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
    ShrinkWindows();
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

void FluidEngine::OnChange(const FluidLinks::Changed& change) {
  if (change.delay) Replan(change.link);
  if (change.narrower) narrowed_.push_back(change.link);
  if (change.outage == Time{0}) return;
  for (const int slot : BulkOver(change.link)) {
    const Active& active = active_[slot];
    if (active.phase != Phase::kSteady || active.window == kUnlimited) continue;
    Shrink(slot, transport_->AfterOutage(active.course, active.window, change.outage));
  }
}

// The slots of the flows that drain over the link.
std::vector<int> FluidEngine::BulkOver(int link) const {
  const int count = bulk_.shares().count(link);
  if (count == 0) return {};
  if (count == 1) return {bulk_slot_[bulk_.shares().only(link)]};
  std::vector<int> slots;
  for (const auto& [id, slot] : slot_of_) {
    const Active& active = active_[slot];
    if (active.phase != Phase::kLatency && !active.control && Crosses(active, link)) {
      slots.push_back(slot);
    }
  }
  return slots;
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
