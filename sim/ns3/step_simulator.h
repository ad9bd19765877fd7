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
//
// There may be several timelines, so that what belongs to one can be put off as a whole while the
// others go on: an event belongs to the timeline of the event that scheduled it, and ns-3's clock
// (ns3::Simulator::Now) is, within it, the virtual time less all that its timeline was put off by.
// TCP's timers thus never see the time that was skipped. Timeline 0 is never put off.
class StepSimulator : public ns3::SimulatorImpl {
 public:
  ~StepSimulator() override;

  // Enters a timeline for as long as it lives: what is scheduled and cancelled belongs to it.
  class Within {
   public:
    Within(StepSimulator& simulator, int timeline)
        : simulator_(simulator), before_(simulator.timeline_) {
      simulator_.timeline_ = timeline;
    }
    ~Within() { simulator_.timeline_ = before_; }
    Within(const Within&) = delete;
    Within& operator=(const Within&) = delete;

   private:
    StepSimulator& simulator_;
    const int before_;
  };

  // A new timeline; its number.
  int AddTimeline();

  // Puts off all that is to happen in a timeline by `delta` ns. A negative `delta` takes an earlier
  // one back; no event may come to lie in the past by it.
  void PutOff(int timeline, std::int64_t delta);

  // The virtual time of the next event, cancelled ones included; nothing when there is none.
  std::optional<std::uint64_t> NextTs() const;

  // Runs the next event. Afterwards timeline 0 is entered.
  void RunOne();

  // Lets idle time pass: `ts` must not lie before now nor after the next event.
  void SkipTo(std::uint64_t ts) { now_ = ts; }

  std::uint64_t NowTs() const { return now_; }

  // How much the present timeline lags behind the virtual time, ns.
  std::int64_t Lag() const { return lags_[static_cast<std::size_t>(timeline_)]; }

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
    std::uint64_t ts;  // virtual
    std::uint64_t order;
    int timeline;
    ns3::EventImpl* event;  // one reference is ours
    // For the standard heap algorithms, whose front is the largest.
    bool operator<(const Entry& o) const { return ts != o.ts ? ts > o.ts : order > o.order; }
  };

  ns3::EventId Insert(std::uint64_t ts, ns3::EventImpl* event);
  bool PresentIsNext() const;
  std::uint64_t LocalTs() const { return now_ - static_cast<std::uint64_t>(Lag()); }

  std::vector<Entry> heap_;
  std::deque<Entry> present_;
  std::list<ns3::EventId> at_destroy_;
  std::uint64_t now_ = 0;                 // virtual
  std::vector<std::int64_t> lags_ = {0};  // [timeline] ns
  int timeline_ = 0;
  std::uint64_t order_ = 0;    // of the last event scheduled
  std::uint32_t current_ = 0;  // uid of the event that runs
  std::uint64_t count_ = 0;
};

}  // namespace spes::sim
