// TCP as the fluid level sees it: formulas for one connection. What is measured and not derived is
// said so, with the packet level's figures.
#pragma once

#include <string>
#include <vector>

namespace spes::sim {

// The mean window, in segments, under random losses of which a share `p` of all segments, above 0
// and below 1, begins one (a burst counts once), `rtt_s` an empty path's round trip. `congestion`
// is "cubic" or "reno".
double LossWindow(const std::string& congestion, double p, double rtt_s);

// What is left of a window after a loss.
double LossFactor(const std::string& congestion);

}  // namespace spes::sim
