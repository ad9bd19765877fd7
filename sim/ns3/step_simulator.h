// ns-3's event queue, made to stop exactly where we want.
#pragma once

#include <ns3/scheduler.h>
#include <ns3/simulator-impl.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <optional>
#include <vector>

namespace spes::sim {

// Replaces ns-3's DefaultSimulatorImpl. That one stops only through an event of its own, which
// leaves other events of the same nanosecond behind, does not say when its next event is due and
// cannot skip idle time; here the caller steps. A binary heap with a first-in-first-out lane for
// events of the present nanosecond; cancelled events stay until their time, as in ns-3. Events at
// the same time run in the order in which they were scheduled. Single-threaded. Execution contexts
// (node numbers in log lines) are not kept.
class StepSimulator : public ns3::SimulatorImpl {
 public:
  ~StepSimulator() override;

  // The time of the next event, cancelled ones included; nothing when there is none.
  std::optional<std::uint64_t> NextTs() const;

  // Runs the next event.
  void RunOne();

  // Lets idle time pass: `ts` must not lie before now nor after the next event.
  void SkipTo(std::uint64_t ts) { now_ = ts; }

  std::uint64_t NowTs() const { return now_; }

  // Of ns3::SimulatorImpl. Run and Stop do nothing: time passes only through RunOne and SkipTo.
  void Destroy() override;
  bool IsFinished() const override;
  void Stop() override {}
  ns3::EventId Stop(const ns3::Time& delay) override;
  ns3::EventId Schedule(const ns3::Time& delay, ns3::EventImpl* event) override;
  void ScheduleWithContext(std::uint32_t context, const ns3::Time& delay,
                           ns3::EventImpl* event) override;
  ns3::EventId ScheduleNow(ns3::EventImpl* event) override;
  ns3::EventId ScheduleDestroy(ns3::EventImpl* event) override;
  void Remove(const ns3::EventId& id) override { Cancel(id); }
  void Cancel(const ns3::EventId& id) override;
  bool IsExpired(const ns3::EventId& id) const override;
  void Run() override {}
  ns3::Time Now() const override;
  ns3::Time GetDelayLeft(const ns3::EventId& id) const override;
  ns3::Time GetMaximumSimulationTime() const override;
  void SetScheduler(ns3::ObjectFactory) override {}
  std::uint32_t GetSystemId() const override { return 0; }
  std::uint32_t GetContext() const override;
  std::uint64_t GetEventCount() const override { return count_; }

 private:
  struct Entry {
    std::uint64_t ts;
    std::uint64_t order;
    ns3::EventImpl* event;  // one reference is ours
    // For the standard heap algorithms, whose front is the largest.
    bool operator<(const Entry& o) const { return ts != o.ts ? ts > o.ts : order > o.order; }
  };

  ns3::EventId Insert(std::uint64_t ts, ns3::EventImpl* event);
  bool PresentIsNext() const;

  std::vector<Entry> heap_;
  std::deque<Entry> present_;
  std::list<ns3::EventId> at_destroy_;
  std::uint64_t now_ = 0;
  std::uint64_t order_ = 0;    // of the last event scheduled
  std::uint32_t current_ = 0;  // uid of the event that runs
  std::uint64_t count_ = 0;
};

}  // namespace spes::sim
