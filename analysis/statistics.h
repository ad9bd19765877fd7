// Small statistics over nodes, rounds and the like.
#pragma once

#include <span>

namespace spes::analysis {

struct Spread {
  double min = 0, mean = 0, max = 0;
  bool operator==(const Spread&) const = default;
};

// All zero where there are no values.
Spread SpreadOf(std::span<const double> values);

// part / whole; 0 where the whole is 0.
double Share(double part, double whole);

}  // namespace spes::analysis
