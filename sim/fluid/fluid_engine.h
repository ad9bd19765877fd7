// Flows as liquids: each loses some time at its start, and then drains at its max-min fair share of
// the links. No packets, so a flow costs a handful of events, whatever its size.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/fluid/drains.h"
#include "sim/fluid/fluid_links.h"
#include "sim/fluid/timers.h"
#include "sim/fluid/transport.h"
#include "sim/network.h"
#include "sim/path_memory.h"

namespace spes::sim {

// With n active flows an event costs O(log n) as a rule; MaxMin says when it is more. Events of one
// nanosecond share one division of the links.
class FluidEngine : public Network {
 public:
  FluidEngine(std::shared_ptr<const LinkGraph> graph, const TcpConfig& tcp,
              std::unique_ptr<Transport> transport);

  Time Now() const override { return now_; }
  void Prepare(int from, int to, int streams) override;
  FlowId Start(const Flow& flow, OnDone done) override;
  void Cancel(FlowId id) override;
  std::optional<Time> NextEvent() const override;
  Time AdvanceTo(Time t) override;
  const LinkGraph& graph() const override { return *graph_; }
  std::vector<LinkUsage> Usage() const override;

 private:
  static constexpr double kUnlimited = MaxMin::kInfinity;

  // A flow without a window drains as kSteady from the start.
  enum class Phase { kLatency, kSlowStart, kSteady };
  struct Active {
    FlowResult result;
    OnDone done;
    Course course;
    const std::vector<int>* route = nullptr;
    bool control = false;
    Phase phase = Phase::kLatency;
    std::size_t stage = 0;
    int number = -1;                       // in its Drains, after the latency
    int contended = -1;                    // the link for which it was weighed
    std::optional<Time> filled;            // when it came to fill its share
    double window = 0;                     // bytes; infinite where nothing depends on it
    double first = 0;                      // the window after slow start, if nothing has shrunk it
    double threshold = PathMemory::kNone;  // that ends slow start, whatever else does not
    double reached = 0;                    // the last window before nothing depended on it
    double anchor = 0;                     // the window from which it grows
    Time since{0};                         // of the round in slow start; of the anchor
    bool grows = false;                    // the window holds the flow, and grows
  };

  Drains& DrainsOf(const Active& active) { return active.control ? control_ : bulk_; }
  const Drains& DrainsOf(const Active& active) const { return active.control ? control_ : bulk_; }
  bool empty() const { return slot_of_.empty(); }

  // fluid_engine.cc
  void Settle();
  void UpdateControl();
  void Weigh();
  Time NextTime() const;
  void Happen();
  void OnChange(const FluidLinks::Changed& change);
  void Replan(int link);
  void Wake(int slot);
  void Begin(int slot);
  void Advance(int slot);
  void End(int slot, FlowOutcome outcome, std::int64_t delivered);
  void Report();
  bool Crosses(const Active& active, int link) const;
  std::vector<int> BulkOver(int link) const;
  double Delivered(const Active& active) const;
  FlowResult ResultNow(const Active& active, std::int64_t delivered,
                       std::vector<LinkUsage>* usage) const;

  // fluid_windows.cc
  double Cap(const Active& active) const;
  bool Remembers(const Active& active) const;
  void StartWindow(int slot);
  void Remember(const Active& active, FlowOutcome outcome);
  void SetWindow(int slot, double window);
  Time RoundTrip(const Active& active) const;
  void NextRound(int slot);
  void StopSlowStart(int slot, double window);
  void AwaitOverflows();
  void Overflow(int link);
  double Grown(const Active& active) const;
  void LookAfterWindows();
  void AwaitGrowth(int slot);
  void Shrink(int slot, double window);
  void ShrinkWindows();
  int FullLink(const Active& active) const;
  double QueuedNs(const Active& active) const;
  double MeanQueuedNs(const Active& active) const;

  const std::shared_ptr<const LinkGraph> graph_;
  const Time stall_timeout_;
  const std::unique_ptr<Transport> transport_;
  const bool remembers_;
  Time now_{0};
  FlowId next_id_ = 1;
  std::set<std::pair<int, int>> met_;  // hosts with open connections

  std::map<std::pair<int, int>, PathMemory> memories_;  // [from, to]

  std::vector<Active> active_;  // by slot
  std::vector<int> free_slots_;
  std::unordered_map<FlowId, int> slot_of_;
  Drains control_, bulk_;
  FluidLinks links_;
  std::vector<int> control_slot_, bulk_slot_;  // [number]
  std::set<int> slow_starting_;                // slots
  std::set<int> draining_control_;             // slots
  std::vector<int> doubled_;            // slots whose windows have since the links were divided
  Timers wakes_;                        // by slot: the first byte arrives, the window grows
  std::vector<int> narrowed_;           // links that have lost capacity since they were divided
  Timers overflows_;                    // by link: of its queue, after slow start has filled it
  std::vector<bool> overflow_pending_;  // [link]
  std::vector<LinkUsage> usage_;        // of flows that have ended
  std::deque<std::pair<OnDone, FlowResult>> ended_;
};

}  // namespace spes::sim
