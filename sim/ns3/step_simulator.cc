#include "sim/ns3/step_simulator.h"

#include <ns3/event-id.h>
#include <ns3/event-impl.h>
#include <ns3/nstime.h>
#include <ns3/simulator.h>

#include <algorithm>
#include <limits>

namespace spes::sim {
namespace {

// ns-3 keeps the numbers below VALID for itself; ours wrap around above them.
std::uint32_t Uid(std::uint64_t order) {
  constexpr std::uint64_t kFirst = ns3::EventId::UID::VALID;
  return static_cast<std::uint32_t>(kFirst +
                                    order % (std::numeric_limits<std::uint32_t>::max() - kFirst));
}

}  // namespace

StepSimulator::~StepSimulator() { Destroy(); }

std::optional<std::uint64_t> StepSimulator::NextTs() const {
  if (!present_.empty()) return now_;
  if (heap_.empty()) return std::nullopt;
  return heap_.front().ts;
}

bool StepSimulator::PresentIsNext() const {
  if (present_.empty()) return false;
  return heap_.empty() || heap_.front() < present_.front();
}

void StepSimulator::RunOne() {
  Entry next;
  if (PresentIsNext()) {
    next = present_.front();
    present_.pop_front();
  } else {
    std::pop_heap(heap_.begin(), heap_.end());
    next = heap_.back();
    heap_.pop_back();
  }
  now_ = next.ts;
  timeline_ = next.timeline;
  current_ = Uid(next.order);
  ++count_;
  next.event->Invoke();
  next.event->Unref();
  timeline_ = 0;
}

int StepSimulator::AddTimeline() {
  lags_.push_back(0);
  return static_cast<int>(lags_.size()) - 1;
}

void StepSimulator::PutOff(int timeline, std::int64_t delta) {
  lags_[static_cast<std::size_t>(timeline)] += delta;
  const auto put_off = [&](Entry& entry) {
    if (entry.timeline == timeline) entry.ts += static_cast<std::uint64_t>(delta);
  };
  // What was due now is not any more, and the other way round.
  heap_.insert(heap_.end(), present_.begin(), present_.end());
  present_.clear();
  for (Entry& entry : heap_) put_off(entry);
  std::make_heap(heap_.begin(), heap_.end());
}

void StepSimulator::Destroy() {
  while (!at_destroy_.empty()) {
    const ns3::EventId id = at_destroy_.front();
    at_destroy_.pop_front();
    if (!id.PeekEventImpl()->IsCancelled()) id.PeekEventImpl()->Invoke();
  }
  for (const Entry& entry : heap_) entry.event->Unref();
  for (const Entry& entry : present_) entry.event->Unref();
  heap_.clear();
  present_.clear();
}

bool StepSimulator::IsFinished() const { return heap_.empty() && present_.empty(); }

ns3::EventId StepSimulator::Stop(const ns3::Time&) { return {}; }

ns3::EventId StepSimulator::Insert(std::uint64_t ts, ns3::EventImpl* event) {
  const Entry entry{ts, ++order_, timeline_, event};
  if (ts == now_) {
    present_.push_back(entry);
  } else {
    heap_.push_back(entry);
    std::push_heap(heap_.begin(), heap_.end());
  }
  // An event's name carries the time of its timeline.
  return {ns3::Ptr<ns3::EventImpl>(event, true), ts - static_cast<std::uint64_t>(Lag()),
          GetContext(), Uid(order_)};
}

ns3::EventId StepSimulator::Schedule(const ns3::Time& delay, ns3::EventImpl* event) {
  return Insert(now_ + static_cast<std::uint64_t>(delay.GetTimeStep()), event);
}

void StepSimulator::ScheduleWithContext(std::uint32_t, const ns3::Time& delay,
                                        ns3::EventImpl* event) {
  Schedule(delay, event);
}

ns3::EventId StepSimulator::ScheduleNow(ns3::EventImpl* event) { return Insert(now_, event); }

ns3::EventId StepSimulator::ScheduleDestroy(ns3::EventImpl* event) {
  const ns3::EventId id(ns3::Ptr<ns3::EventImpl>(event, false), LocalTs(), GetContext(),
                        ns3::EventId::UID::DESTROY);
  at_destroy_.push_back(id);
  return id;
}

void StepSimulator::Cancel(const ns3::EventId& id) {
  if (!IsExpired(id)) id.PeekEventImpl()->Cancel();
}

bool StepSimulator::IsExpired(const ns3::EventId& id) const {
  if (id.PeekEventImpl() == nullptr || id.PeekEventImpl()->IsCancelled()) return true;
  if (id.GetUid() == ns3::EventId::UID::DESTROY) {
    return std::find(at_destroy_.begin(), at_destroy_.end(), id) == at_destroy_.end();
  }
  const std::uint64_t now = LocalTs();
  return id.GetTs() < now || (id.GetTs() == now && id.GetUid() <= current_);
}

ns3::Time StepSimulator::Now() const { return ns3::TimeStep(LocalTs()); }

ns3::Time StepSimulator::GetDelayLeft(const ns3::EventId& id) const {
  return ns3::TimeStep(IsExpired(id) ? 0 : id.GetTs() - LocalTs());
}

ns3::Time StepSimulator::GetMaximumSimulationTime() const {
  return ns3::TimeStep(std::numeric_limits<std::int64_t>::max());
}

std::uint32_t StepSimulator::GetContext() const { return ns3::Simulator::NO_CONTEXT; }

}  // namespace spes::sim
