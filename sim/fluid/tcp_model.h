// TCP as the fluid level sees it: formulas for one connection. What is measured and not derived is
// said so, with the packet level's figures.
#pragma once

#include <string>
#include <vector>

namespace spes::sim {

// The time that slow start costs a flow of `bytes`, compared with sending at `share` bytes/ns at
// once: in its n-th round trip, of `rtt_ns`, leave 2^n initial windows (`first` bytes), until they
// fill the share or the flow is over. In ns. Without losses the flow takes
//   share's worth of bytes + this + half a round trip;
// where the window has time to grow, that is bytes/share + rtt · (log2(share · rtt / first) − 1/2),
// within 0.1 rtt.
double SlowStartNs(double bytes, double share, double rtt_ns, double first);

// The mean window, in segments, under random losses of which a share `p` of all segments, above 0
// and below 1, begins one (a burst counts once), `rtt_s` an empty path's round trip. `congestion`
// is "cubic" or "reno".
double LossWindow(const std::string& congestion, double p, double rtt_s);

// What is left of a window after a loss.
double LossFactor(const std::string& congestion);

}  // namespace spes::sim
