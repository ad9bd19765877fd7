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

// A part of what a connection sends under such losses, from slow start on: until so many segments
// have been sent, nothing has been lost with probability `clean`; where something has, a segment
// takes `inverse` round trips on average, times the probability of that.
struct LossStage {
  double until = 0;
  double clean = 0;
  double inverse = 0;
};

// The stages of a connection that begins with `first` segments on a path that holds `most`, its
// queue included. The last one has the mean window and no end.
std::vector<LossStage> LossStages(const std::string& congestion, double p, double rtt_s,
                                  double first, double most);

}  // namespace spes::sim
