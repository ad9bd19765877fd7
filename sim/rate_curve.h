// The capacity of one direction of a link over virtual time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/conditions.h"
#include "sim/units.h"

namespace spes::sim {

// Piecewise constant, from virtual time 0 on. Conditions are worked out as far as they are asked
// for, so that random ones need no end. Single-threaded. A constant curve costs no more than its
// one number.
class RateCurve {
 public:
  // bit/s, positive.
  explicit RateCurve(double bps);

  // Trace or constant, × diurnal, − cross traffic (never below 0), 0 in outages. `seed` draws the
  // cross traffic. `trace` may be null; otherwise `bps` is not used.
  RateCurve(double bps, std::shared_ptr<const RateTrace> trace, const Conditions& conditions,
            std::uint64_t seed);
  ~RateCurve();
  RateCurve(RateCurve&&) noexcept;

  bool constant() const { return source_ == nullptr; }

  // bit/s at `t`; at a change, the new one.
  double At(Time t) const;

  // The first change after `t`, or, where there is none for very many steps of the conditions, a
  // time before which there is none; kNever when there is none.
  Time NextChange(Time t) const;

  // Bytes that can pass from 0 to `ns`, and when so many have passed: infinity when never (an
  // outage without end; given up after a hundred years, or a million steps of the conditions at
  // none of which anything passes). In ns, as fractions count.
  double BytesBy(double ns) const;
  double When(double bytes) const;

 private:
  class Source;
  struct Piece {
    std::int64_t at;  // ns
    double bytes;     // passed before `at`
    double bps;
  };

  // Adds pieces until they reach beyond `ns`; false when the last one holds for ever.
  bool ExtendBeyond(double ns) const;
  const Piece& PieceAt(double ns) const;

  double bps_ = 0;
  std::unique_ptr<Source> source_;
  mutable std::vector<Piece> pieces_;
  mutable std::int64_t until_ = 0;         // ns, how long the last piece is known to hold
  mutable std::int64_t looked_ahead_ = 0;  // the until_ at which NextChange gave up
  mutable std::size_t latest_ = 0;         // index of the piece found last
};

}  // namespace spes::sim
