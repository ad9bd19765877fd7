// Flows that drain at their fair shares, and when each has drained.
#pragma once

#include <algorithm>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "sim/fluid/timers.h"
#include "sim/max_min.h"
#include "sim/units.h"

namespace spes::sim {

// Bytes, and rates in bytes per ns. Members of a group of MaxMin that are below their caps drain in
// step: each has its mark on the group's own scale, the bytes drained per unit of weight, and a
// change of the group's rate moves no mark. So a change touches groups and those flows that come to
// their caps or leave them.
class Drains {
 public:
  // A flow that has not drained a byte for `stall_timeout` is reported as stalled, once.
  Drains(std::size_t links, Time stall_timeout)
      : shares_(std::vector<double>(links, 0.0)), stall_timeout_(stall_timeout) {}

  // `bytes` until the flow is reported, from `now` on; it has made its last progress at `progress`.
  // `links` as in MaxMin::Add; so is the number returned.
  int Add(std::span<const int> links, double weight, double cap, double bytes, Time progress);
  void Remove(int flow);

  // Continues with other figures.
  void Renew(int flow, double weight, double cap, double bytes, Time now);

  void SetCapacity(int link, double rate) { shares_.SetCapacity(link, rate); }

  // Shares the links anew if anything has changed.
  void Update(Time now);
  bool outdated() const { return shares_.outdated() || !loose_.empty() || !touched_.empty(); }

  const MaxMin& shares() const { return shares_; }

  // Bytes left until the flow is reported.
  double Left(int flow, Time now) const;

  // When the next flow is to be reported; kNever when none.
  Time next() const { return std::min(single_.next(), pooled_.next()); }

  // Adds the flows due at `now` to one of the lists. They must then be removed or renewed.
  void Report(Time now, std::vector<int>* drained, std::vector<int>* stalled);

 private:
  enum class Mode { kNone, kLoose, kSingle, kPooled };
  struct Flow {
    Mode mode = Mode::kNone;
    double weight = 1;
    double left = 0;   // at `since`, unless pooled
    double rate = 0;   // when single
    int pool = -1;     // when pooled
    double mark = 0;   // when pooled
    Time since{0};     // when attached
    Time progress{0};  // the last one before that
  };
  // Of a group, by its number.
  struct Pool {
    double level = 0;
    double drained = 0;  // per unit of weight, at `since`
    Time since{0};
    std::set<std::pair<double, int>> marks;
  };

  double Drained(const Pool& pool, Time now) const;
  Time Progress(const Flow& flow, Time now) const;
  void Detach(int flow, Time now);
  void Attach(int flow, Time now);
  void ArmPool(int pool, Time now);

  MaxMin shares_;
  Time stall_timeout_;
  std::vector<Flow> flows_;  // [number in shares_]
  std::vector<Pool> pools_;  // [group of shares_]
  std::vector<int> loose_;   // to be attached
  std::vector<int> touched_;
  Timers single_, pooled_;
};

}  // namespace spes::sim
