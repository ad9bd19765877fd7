#include "sim/conditions.h"

#include <cmath>

#include "sim/refuse.h"

namespace spes::sim {

void Conditions::Validate(const std::string& what) const {
  if (!(diurnal.depth >= 0 && diurnal.depth < 1)) {
    Refuse("{} has a diurnal depth of {}: it must lie in [0, 1)", what, diurnal.depth);
  }
  if (diurnal.depth > 0 && diurnal.period < std::chrono::seconds(1)) {
    Refuse("{} has a diurnal period of {} ns: at least a second", what, diurnal.period.count());
  }
  if (diurnal.busiest < Time{0}) Refuse("{} has its busiest time before the start", what);
  for (const Outage& outage : outages) {
    if (outage.at < Time{0}) Refuse("{} has an outage before the start", what);
    if (outage.duration <= Time{0}) Refuse("{} has an outage that takes no time", what);
    if (outage.every != Time{0} && outage.every <= outage.duration) {
      Refuse("{} has an outage of {} that comes again every {}: it must last less than that", what,
             FormatDuration(outage.duration), FormatDuration(outage.every));
    }
  }
  Time before{-1};
  for (const RttStep& step : rtt_steps) {
    if (step.at <= before) Refuse("{} has steps of the round trip that are not in order", what);
    if (step.extra < Time{0}) Refuse("{} has a negative step of the round trip", what);
    before = step.at;
  }
  for (const CrossTraffic& traffic : cross_traffic) {
    if (!(traffic.bps > 0) || !std::isfinite(traffic.bps)) {
      Refuse("{} has cross traffic of {} bit/s: it must be positive and finite", what, traffic.bps);
    }
    if (traffic.mean_on < Time{0} || traffic.mean_off < Time{0} ||
        (traffic.mean_on == Time{0}) != (traffic.mean_off == Time{0})) {
      Refuse(
          "{} has cross traffic that is on for {} and off for {}: both above 0, or both 0 for "
          "traffic that never stops",
          what, FormatDuration(traffic.mean_on), FormatDuration(traffic.mean_off));
    }
  }
}

void Validate(const RateTrace& trace, const std::string& what) {
  if (trace.steps.empty()) Refuse("{} has a trace without steps", what);
  if (trace.steps.front().at != Time{0}) Refuse("{} has a trace that does not begin at 0", what);
  bool passes = false;
  Time before{-1};
  for (const RateTrace::Step& step : trace.steps) {
    if (step.at <= before) Refuse("{} has a trace whose steps are not in order", what);
    if (!(step.bps == 0 || step.bps >= 1) || !std::isfinite(step.bps)) {
      Refuse("{} has a trace with a rate of {} bit/s: it must be 0, or at least 1 bit/s and finite",
             what, step.bps);
    }
    passes |= step.bps > 0;
    before = step.at;
  }
  if (!passes) Refuse("{} has a trace that lets nothing pass", what);
  if (trace.period != Time{0} && trace.period <= before) {
    Refuse("{} has a trace that starts again before its last step", what);
  }
}

}  // namespace spes::sim
