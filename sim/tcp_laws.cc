#include "sim/tcp_laws.h"

#include <cmath>

namespace spes::sim {

double CubicWindow(double p, double rtt_s) { return 1.054 * std::pow(rtt_s / p, 0.75); }

double RenoWindow(double p) { return std::sqrt(1.5 / p); }

bool InCubicRegion(double p, double rtt_s) { return CubicWindow(p, rtt_s) > RenoWindow(p); }

}  // namespace spes::sim
