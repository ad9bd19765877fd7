// How a link changes over time: the data. What follows from it is in rate_curve.h and link_graph.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/units.h"

namespace spes::sim {

// A capacity that was measured, instead of a constant one.
struct RateTrace {
  struct Step {
    Time at;
    double bps;  // until the next step; 0: nothing passes
  };
  std::vector<Step> steps = {};  // the first at 0, later ones later
  Time period{0};                // starts again after it; 0: the last step holds for ever
};

// Fewer bytes pass at the busy hour: the capacity is multiplied by
// 1 − depth · (1 + cos(2π (t − busiest) / period)) / 2, held constant over each 1/96 of the period
// (a quarter of an hour of a day).
struct Diurnal {
  double depth = 0;  // share of the capacity that is gone at the busiest time, in [0, 1)
  Time period = std::chrono::hours(24);
  Time busiest = std::chrono::hours(20);
};

// Nothing passes; what is sent waits or is dropped in the queue.
struct Outage {
  Time at{0};
  Time duration{0};
  Time every{0};  // comes again after so long; 0: once
};

// From `at` on the round trip over the link is longer (or, in a later step, shorter again) by
// `extra` than its basic one; half of it in each direction.
struct RttStep {
  Time at{0};
  Time extra{0};
};

// Somebody else's traffic that does not yield: it takes its rate off the capacity. It comes and
// goes with exponentially distributed durations around the two means, or is always there.
struct CrossTraffic {
  double bps = 0;
  Time mean_on{0};  // both 0: always on
  Time mean_off{0};
};

// Of both directions of a link. Drawn from the network's seed, differently for each direction.
struct Conditions {
  Diurnal diurnal = {};
  std::vector<Outage> outages = {};
  std::vector<RttStep> rtt_steps = {};  // in the order of time
  std::vector<CrossTraffic> cross_traffic = {};

  // Throws std::invalid_argument with one line that begins with `what`: a depth outside [0, 1), a
  // period, duration or rate that is not positive, an outage longer than its interval, steps out of
  // order, one mean without the other.
  void Validate(const std::string& what) const;
};

// Throws std::invalid_argument with one line that begins with `what`: no steps, the first not at 0,
// steps out of order or beyond the period, a rate that is infinite or, unless 0, below 1 bit/s, no
// step above 0.
void Validate(const RateTrace& trace, const std::string& what);

}  // namespace spes::sim
