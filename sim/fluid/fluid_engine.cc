#include "sim/fluid/fluid_engine.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace spes::sim {
namespace {

constexpr auto kWallSlice = std::chrono::milliseconds(100);
// A starting flow's prospects are examined anew when they have changed by more than this factor.
constexpr double kExamine = 1.25;

double Ns(Time t) { return static_cast<double>(t.count()); }

Time Later(Time t, Time by) { return by < kNever - t ? t + by : kNever; }

}  // namespace

FluidEngine::FluidEngine(std::shared_ptr<const LinkGraph> graph, const TcpConfig& tcp,
                         std::unique_ptr<Transport> transport)
    : graph_(std::move(graph)),
      stall_timeout_(tcp.stall_timeout),
      transport_(std::move(transport)),
      control_(graph_->links().size(), tcp.stall_timeout),
      bulk_(graph_->links().size(), tcp.stall_timeout),
      wanted_(std::vector<double>(graph_->links().size(), 0.0)),
      uses_(graph_->links().size(), 0),
      rate_(graph_->links().size(), 0.0),
      taken_(graph_->links().size(), 0.0),
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
  active.starting = true;
  UseLinks(active);
  if (flow.bytes == 0 || active.control || !transport_->starts_slowly()) {
    starts_.Set(slot, now_ + active.course.latency);
  } else {
    active.wanted =
        wanted_.Add(*active.route, active.course.weight, active.course.stages.front().cap);
    starting_.insert(slot);
    starts_.Set(slot, Later(now_, stall_timeout_));
  }
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
  const bool settled = !control_.outdated() && !bulk_.outdated() && !wanted_.outdated();
  return settled ? NextTime() : now_;
}

Time FluidEngine::NextTime() const {
  return std::min({starts_.next(), control_.next(), bulk_.next(), changes_.next()});
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
  while (changes_.next() <= now_) {
    const int link = changes_.first();
    const bool delayed = graph_->links()[link].NextDelayChange(now_ - Time(1)) == now_;
    ReadLink(link);
    if (delayed) Replan(link);
  }
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
  while (starts_.next() <= now_) Begin(starts_.first());
}

// The first byte is there, or the flow has waited too long for a way to start.
void FluidEngine::Begin(int slot) {
  Active& active = active_[slot];
  starts_.Clear(slot);
  const std::int64_t bytes = active.result.flow.bytes;
  if (bytes == 0) return End(slot, FlowOutcome::kDone, 0);
  if (active.wanted >= 0 && active.share == 0) return End(slot, FlowOutcome::kStalled, 0);
  active.starting = false;
  starting_.erase(slot);
  if (active.control) draining_control_.insert(slot);
  active.began = now_;
  const Course::Stage& stage = active.course.stages.front();
  active.number = DrainsOf(active).Add(*active.route, active.course.weight, stage.cap, stage.until,
                                       active.result.start);
  std::vector<int>& slots = active.control ? control_slot_ : bulk_slot_;
  if (static_cast<std::size_t>(active.number) >= slots.size()) slots.resize(active.number + 1);
  slots[active.number] = slot;
}

// The flow has come to the end of its stage.
void FluidEngine::Advance(int slot) {
  Active& active = active_[slot];
  if (active.stage + 1 == active.course.stages.size()) {
    return End(slot, FlowOutcome::kDone, active.result.flow.bytes);
  }
  const double before = active.course.stages[active.stage].until;
  const Course::Stage& stage = active.course.stages[++active.stage];
  DrainsOf(active).Renew(active.number, active.course.weight, stage.cap, stage.until - before,
                         now_);
  if (active.wanted >= 0) wanted_.SetCap(active.wanted, stage.cap);
}

double FluidEngine::Delivered(const Active& active) const {
  if (active.starting) return 0;
  const double left = DrainsOf(active).Left(active.number, now_);
  return std::max(0.0, active.course.stages[active.stage].until - left);
}

double FluidEngine::WaitNs(int link) const {
  const Link& l = graph_->links()[link];
  return l.queue_bytes * 8e9 / l.bps;
}

// Of a packet of the flow in the queue that it stands behind, if any, over all its time.
double FluidEngine::MeanWaitNs(const Active& active) const {
  if (active.starting || now_ == active.result.start) return 0;
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
  if (full < 0) return 0;
  return WaitNs(full) * (Ns(now_ - active.began) / Ns(now_ - active.result.start));
}

void FluidEngine::End(int slot, FlowOutcome outcome, std::int64_t delivered) {
  Active& active = active_[slot];
  FlowResult& result = active.result;
  result.outcome = outcome;
  result.end = now_;
  result.delivered_bytes = delivered;
  transport_->Count(active.course, MeanWaitNs(active), &result);
  AddUsage(active, result, &usage_);
  ReleaseLinks(active);
  if (active.starting) {
    starts_.Clear(slot);
    starting_.erase(slot);
  } else {
    DrainsOf(active).Remove(active.number);
    draining_control_.erase(slot);
  }
  if (active.wanted >= 0) wanted_.Remove(active.wanted);
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
  if (bulk_.outdated()) {
    bulk_.Update(now_);
    if (Weigh()) bulk_.Update(now_);
  }
  ExamineStarts();
}

// How a flow competes depends on where: weighs those that have come to meet others at another link.
bool FluidEngine::Weigh() {
  bool any = false;
  for (const int number : bulk_.shares().moved()) {
    Active& active = active_[bulk_slot_[number]];
    const int link = bulk_.shares().bottleneck(bulk_.shares().group(number));
    if (link < 0 || link == active.contended) continue;
    active.contended = link;
    const double weight = transport_->Weight(active.result.flow, active.course, WaitNs(link));
    if (weight == active.course.weight) continue;
    active.course.weight = weight;
    const Course::Stage& stage = active.course.stages[active.stage];
    bulk_.Renew(number, weight, stage.cap, bulk_.Left(number, now_), now_);
    if (active.wanted >= 0) wanted_.SetWeight(active.wanted, weight);
    any = true;
  }
  return any;
}

// Control flows take what they can get of the links; bulk flows share the rest.
void FluidEngine::UpdateControl() {
  if (!control_.outdated()) return;
  control_.Update(now_);
  std::vector<int> links;
  std::swap(links, taken_links_);
  for (const int link : links) taken_[link] = 0;
  for (const int slot : draining_control_) {
    const Active& active = active_[slot];
    for (const int link : *active.route) {
      taken_[link] += control_.shares().Rate(active.number);
      taken_links_.push_back(link);
    }
  }
  links.insert(links.end(), taken_links_.begin(), taken_links_.end());
  for (const int link : links) SetCapacity(link);
}

// Sets when flows that start will have done so, from the shares they can hope for.
void FluidEngine::ExamineStarts() {
  if (!wanted_.outdated()) return;
  wanted_.Update();
  bool all = false;
  for (const int group : wanted_.changed_groups()) {
    if (static_cast<std::size_t>(group) >= examined_.size()) examined_.resize(group + 1, 0);
    const double level = wanted_.level(group);
    if (level > examined_[group] * kExamine || level * kExamine < examined_[group]) {
      examined_[group] = level;
      all = true;
    }
  }
  for (const int slot : starting_) {
    Active& active = active_[slot];
    if (active.share > 0 && !all) continue;
    active.share = wanted_.Rate(active.wanted);
    const Time start = active.result.start;
    if (active.share <= 0) {
      starts_.Set(slot, std::max(now_, Later(start, stall_timeout_)));
      continue;
    }
    const Time lost = active.course.latency +
                      transport_->StartUp(active.result.flow, active.course, active.share);
    starts_.Set(slot, std::max(now_, Later(start, lost)));
  }
}

void FluidEngine::UseLinks(const Active& active) {
  for (const int link : *active.route) {
    if (++uses_[link] == 1) ReadLink(link);
  }
}

void FluidEngine::ReleaseLinks(const Active& active) {
  for (const int link : *active.route) {
    if (--uses_[link] == 0) changes_.Clear(link);
  }
}

void FluidEngine::ReadLink(int link) {
  const Link& l = graph_->links()[link];
  rate_[link] = l.rate.At(now_) * transport_->efficiency() / 8e9;
  SetCapacity(link);
  changes_.Set(link, std::min(l.rate.NextChange(now_), l.NextDelayChange(now_)));
}

void FluidEngine::SetCapacity(int link) {
  control_.SetCapacity(link, rate_[link]);
  bulk_.SetCapacity(link, std::max(0.0, rate_[link] - taken_[link]));
  wanted_.SetCapacity(link, rate_[link]);
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
    const Course::Stage& stage = active.course.stages[active.stage];
    if (active.wanted >= 0) {
      wanted_.SetWeight(active.wanted, active.course.weight);
      wanted_.SetCap(active.wanted, stage.cap);
    }
    if (!active.starting) {
      DrainsOf(active).Renew(active.number, active.course.weight, stage.cap,
                             stage.until - delivered, now_);
    }
  }
}

void FluidEngine::AddUsage(const Active& active, const FlowResult& result,
                           std::vector<LinkUsage>* usage) const {
  const Flow& flow = result.flow;
  const std::vector<Link>& links = graph_->links();
  double passing = 1;  // of the packets sent
  for (const int link : *active.route) {
    LinkUsage& used = (*usage)[link];
    used.wire_bytes += std::llround(static_cast<double>(result.wire_bytes) * passing);
    if (active.course.loss > 0) {
      const double lost = passing * links[link].loss / active.course.loss;
      used.dropped_packets += std::llround(static_cast<double>(result.dropped_packets) * lost);
    }
    passing *= 1 - links[link].loss;
  }
  const std::int64_t acks =
      std::llround(transport_->AckBytes(flow, static_cast<double>(result.delivered_bytes)));
  if (acks == 0) return;
  for (const int link : graph_->Route(flow.to, flow.from)) (*usage)[link].wire_bytes += acks;
}

std::vector<LinkUsage> FluidEngine::Usage() const {
  std::vector<LinkUsage> usage = usage_;
  for (const auto& [id, slot] : slot_of_) {
    const Active& active = active_[slot];
    FlowResult result = active.result;
    result.delivered_bytes = static_cast<std::int64_t>(Delivered(active));
    result.end = now_;
    transport_->Count(active.course, MeanWaitNs(active), &result);
    AddUsage(active, result, &usage);
  }
  return usage;
}

}  // namespace spes::sim
