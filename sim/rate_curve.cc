#include "sim/rate_curve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include "sim/seeds.h"

namespace spes::sim {
namespace {

constexpr double kHorizonNs = 100.0 * 365 * 86400 * 1e9;
// Steps of the conditions for which nobody looks ahead any further: a change may then be one that
// changes nothing, and what has not passed by then never does. (The steps of a trace in
// milliseconds for a quarter of an hour.)
constexpr int kLookAhead = 10'000, kPatience = 1'000'000;
constexpr int kDiurnalSteps = 96;

// Something that changes in steps: the value at `t`, and when it changes next.
struct Stage {
  double value;
  Time until;
};

bool IsConstant(const RateTrace& trace) {
  return std::ranges::all_of(trace.steps, [&trace](const RateTrace::Step& step) {
    return step.bps == trace.steps.front().bps;
  });
}

Stage Of(const RateTrace& trace, Time t) {
  const Time lap = trace.period > Time{0} ? t / trace.period * trace.period : Time{0};
  const auto next = std::ranges::upper_bound(trace.steps, t - lap, {}, &RateTrace::Step::at);
  const Time end = trace.period > Time{0} ? lap + trace.period : kNever;
  return {std::prev(next)->bps, next == trace.steps.end() ? end : lap + next->at};
}

Stage Of(const Diurnal& diurnal, Time t) {
  if (diurnal.depth == 0) return {1, kNever};
  const Time step = diurnal.period / kDiurnalSteps;
  const Time begin = t / step * step;
  const double phase = 2 * std::numbers::pi *
                       (ToSeconds(begin + step / 2 - diurnal.busiest) / ToSeconds(diurnal.period));
  return {1 - diurnal.depth * (1 + std::cos(phase)) / 2, begin + step};
}

Stage Of(const Outage& outage, Time t) {
  if (t < outage.at) return {1, outage.at};
  const Time lap = outage.every > Time{0} ? (t - outage.at) / outage.every * outage.every : Time{0};
  const Time begin = outage.at + lap;
  if (t < begin + outage.duration) return {0, begin + outage.duration};
  return {1, outage.every > Time{0} ? begin + outage.every : kNever};
}

}  // namespace

// Asked for ever later times.
class RateCurve::Source {
 public:
  Source(double bps, std::shared_ptr<const RateTrace> trace, const Conditions& conditions,
         std::uint64_t seed)
      : bps_(bps), trace_(std::move(trace)), conditions_(conditions) {
    for (const CrossTraffic& traffic : conditions_.cross_traffic) {
      others_.push_back(
          {.traffic = traffic, .random = std::mt19937_64(SourceSeed(seed, others_.size()))});
    }
    double most = bps;
    if (trace_) most = std::ranges::max(trace_->steps, {}, &RateTrace::Step::bps).bps;
    for (const CrossTraffic& traffic : conditions_.cross_traffic) {
      if (traffic.mean_on == Time{0}) most -= traffic.bps;
    }
    nothing_left_ = most <= 0;
  }

  Stage At(Time t) {
    if (nothing_left_) return {0, kNever};
    Stage now = trace_ ? Of(*trace_, t) : Stage{bps_, kNever};
    const auto combine = [&now](double value, Time until) {
      now.value = value;
      now.until = std::min(now.until, until);
    };
    const Stage diurnal = Of(conditions_.diurnal, t);
    combine(now.value * diurnal.value, diurnal.until);
    for (Other& other : others_) {
      other.MoveTo(t);
      combine(other.on ? std::max(0.0, now.value - other.traffic.bps) : now.value, other.until);
    }
    for (const Outage& outage : conditions_.outages) {
      const Stage up = Of(outage, t);
      combine(now.value * up.value, up.until);
    }
    return now;
  }

 private:
  struct Other {
    CrossTraffic traffic;
    std::mt19937_64 random;
    bool on = false;
    Time until{0};

    void MoveTo(Time t) {
      while (until <= t) {
        if (traffic.mean_on == Time{0}) {
          on = true;
          until = kNever;
          return;
        }
        // It begins on or off as it would be met at some moment.
        const double share =
            ToSeconds(traffic.mean_on) / (ToSeconds(traffic.mean_on) + ToSeconds(traffic.mean_off));
        on = until == Time{0} ? Uniform() < share : !on;
        const Time mean = on ? traffic.mean_on : traffic.mean_off;
        const double s = -std::log(1 - Uniform()) * ToSeconds(mean);
        until += std::max(Time{1000}, FromSeconds(s));
      }
    }

    // In [0, 1). The standard's distributions differ between libraries.
    double Uniform() { return static_cast<double>(random() >> 11) * 0x1p-53; }
  };

  const double bps_;
  const std::shared_ptr<const RateTrace> trace_;
  const Conditions conditions_;
  std::vector<Other> others_;
  bool nothing_left_ = false;  // traffic that never stops takes all that there ever is
};

RateCurve::RateCurve(double bps) : bps_(bps) {}

RateCurve::RateCurve(double bps, std::shared_ptr<const RateTrace> trace,
                     const Conditions& conditions, std::uint64_t seed)
    : bps_(bps) {
  if (trace && IsConstant(*trace)) {
    bps_ = trace->steps.front().bps;
    trace = nullptr;
  }
  if (!trace && conditions.diurnal.depth == 0 && conditions.outages.empty() &&
      conditions.cross_traffic.empty()) {
    return;
  }
  source_ = std::make_unique<Source>(bps_, std::move(trace), conditions, seed);
  const Stage first = source_->At(Time{0});
  pieces_.push_back({0, 0, first.value});
  until_ = first.until.count();
}

RateCurve::~RateCurve() = default;
RateCurve::RateCurve(RateCurve&&) noexcept = default;

bool RateCurve::ExtendBeyond(double ns) const {
  while (static_cast<double>(until_) <= ns) {
    if (until_ == kNever.count()) return false;
    const Piece& last = pieces_.back();
    const double passed = last.bytes + static_cast<double>(until_ - last.at) * last.bps / 8e9;
    const Stage now = source_->At(Time(until_));
    if (now.value != last.bps) pieces_.push_back({until_, passed, now.value});
    until_ = now.until.count();
  }
  return true;
}

const RateCurve::Piece& RateCurve::PieceAt(double ns) const {
  ExtendBeyond(ns);
  // Time mostly goes on by little.
  if (static_cast<double>(pieces_[latest_].at) > ns) latest_ = 0;
  for (int i = 0; i < 4; ++i) {
    if (latest_ + 1 == pieces_.size() || static_cast<double>(pieces_[latest_ + 1].at) > ns) {
      return pieces_[latest_];
    }
    ++latest_;
  }
  const auto next = std::upper_bound(
      pieces_.begin() + static_cast<std::ptrdiff_t>(latest_), pieces_.end(), ns,
      [](double t, const Piece& piece) { return t < static_cast<double>(piece.at); });
  latest_ = static_cast<std::size_t>(next - pieces_.begin()) - 1;
  return pieces_[latest_];
}

double RateCurve::At(Time t) const {
  return constant() ? bps_ : PieceAt(static_cast<double>(t.count())).bps;
}

Time RateCurve::NextChange(Time t) const {
  if (constant()) return kNever;
  PieceAt(static_cast<double>(t.count()));
  for (int steps = 0; latest_ + 1 == pieces_.size(); ++steps) {
    if (until_ == kNever.count() || static_cast<double>(until_) > kHorizonNs) return kNever;
    if (steps == kLookAhead) looked_ahead_ = until_;
    if (looked_ahead_ == until_) return Time(until_);
    ExtendBeyond(static_cast<double>(until_));
  }
  return Time(pieces_[latest_ + 1].at);
}

double RateCurve::BytesBy(double ns) const {
  if (constant()) return ns * bps_ / 8e9;
  const Piece& piece = PieceAt(ns);
  return piece.bytes + (ns - static_cast<double>(piece.at)) * piece.bps / 8e9;
}

double RateCurve::When(double bytes) const {
  if (constant()) return bytes * 8e9 / bps_;
  const auto last = [this] {
    const Piece& piece = pieces_.back();
    return piece.bytes +
           (static_cast<double>(until_) - static_cast<double>(piece.at)) * piece.bps / 8e9;
  };
  for (int steps = 0; last() < bytes; ++steps) {
    if (pieces_.back().bps > 0) steps = 0;
    if (until_ == kNever.count() || static_cast<double>(until_) > kHorizonNs ||
        steps == kPatience) {
      return std::numeric_limits<double>::infinity();
    }
    ExtendBeyond(static_cast<double>(until_));
  }
  // The last piece that begins before so many bytes have passed.
  const auto next = std::ranges::lower_bound(pieces_, bytes, {}, &Piece::bytes);
  if (next == pieces_.begin()) return 0;
  const Piece& piece = *std::prev(next);
  return static_cast<double>(piece.at) + (bytes - piece.bytes) * 8e9 / piece.bps;
}

}  // namespace spes::sim
