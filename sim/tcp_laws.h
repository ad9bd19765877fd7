// What is known in closed form about TCP under random loss.
#pragma once

namespace spes::sim {

// The mean window, in segments, of CUBIC by its own law at loss `p` and round trip `rtt_s`: RFC
// 9438, equation 6 with C = 0.4 and β = 0.7: 1.054 · (RTT/p)^0.75.
double CubicWindow(double p, double rtt_s);

// The same of its Reno-friendly region: RFC 9438, section 4.3, α = 3 (1 − β)/(1 + β), where the
// window is that of Reno, √(3/2) / √p (M. Mathis et al., SIGCOMM CCR 27, 1997, without delayed
// acknowledgements).
double RenoWindow(double p);

// Whether CUBIC follows its own law rather than Reno's.
bool InCubicRegion(double p, double rtt_s);

}  // namespace spes::sim
