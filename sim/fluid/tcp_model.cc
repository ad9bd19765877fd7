#include "sim/fluid/tcp_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/tcp_laws.h"

namespace spes::sim {
namespace {

// The laws hold for losses at equal distances. Under random ones the packet level's mean windows,
// steady, at 20 and 100 ms, are
//   p              1e-4         1e-3        5e-3        1e-2        2e-2        5e-2        1e-1
//   Reno        132, 134   45.8, 45.6  20.4, 20.2  14.1, 14.6  10.0, 10.5  5.08, 6.66  2.37, 3.33
//   CUBIC       127, 214   42.5, 46.9  17.5, 18.0  12.2, 12.7  8.36, 8.62  3.92, 4.57  1.66, 2.26
// which these factors to the laws give to within 8 % up to p = 2e-2.
constexpr double kRandomReno = 1.15;
constexpr double kRandomFriendly = 1.01;
constexpr double kRandomCubic = 1.18;
// CUBIC goes from one of its laws to the other by and by: the fourth root of the sum of the fourth
// powers is 1.19 times the larger where they are equal.
constexpr double kBlend = 4;

// Of losses, the share that ends in a time-out is about this times p²: far less at small p than in
// the model below, whose TCP has no selective acknowledgements.
constexpr double kTimeouts = 25;
// A time-out comes so long after the smoothed round trip, as in Linux.
constexpr double kLeastTimeout = 0.2;  // s

}  // namespace

double LossWindow(const std::string& congestion, double p, double rtt_s) {
  double window = kRandomReno * RenoWindow(p);
  if (congestion == "cubic") {
    window = std::pow(std::pow(kRandomFriendly * RenoWindow(p), kBlend) +
                          std::pow(kRandomCubic * CubicWindow(p, rtt_s), kBlend),
                      1 / kBlend);
  }
  // J. Padhye, V. Firoiu, D. Towsley, J. Kurose, "Modeling TCP throughput" (SIGCOMM 1998), equation
  // 30: to the time that a segment takes comes that of the time-outs, which double.
  const double timeouts = std::min(1.0, kTimeouts * p * p) * p * (1 + 32 * p * p);
  return rtt_s / (rtt_s / window + (rtt_s + kLeastTimeout) * timeouts);
}

// The first loss comes after x segments with density p·exp(−p·x), and is noticed when slow start
// has a window of about x, or as much as the path holds, of which the factor β remains. With a
// segment more per round trip, and half of the window less per loss, W² then relaxes to its mean
// with exp(−p·(s − x)) as s goes on. What is averaged over x is the time that the segment takes,
// the inverse of the window.
std::vector<LossStage> LossStages(const std::string& congestion, double p, double rtt_s,
                                  double first, double most) {
  constexpr int kPoints = 32;
  const double settled = LossWindow(congestion, p, rtt_s);
  const double beta = congestion == "cubic" ? 0.7 : 0.5;
  std::vector<LossStage> stages;
  double begin = 0;
  for (const double end : {1. / 32, 1. / 16, 1. / 8, 1. / 4, 1. / 2, 1., 1.5, 2., 3., 4., 6.}) {
    const double middle = (begin + end) / 2, lost = 1 - std::exp(-middle);  // in 1/p segments
    double inverse = 0;
    for (int i = 0; i < kPoints; ++i) {
      const double x = -std::log(1 - lost * (i + 0.5) / kPoints);
      const double start = beta * std::min(x / p + first, most);
      const double square =
          settled * settled + (start * start - settled * settled) * std::exp(x - middle);
      inverse += lost / kPoints / std::sqrt(square);
    }
    stages.push_back({end / p, 1 - lost, inverse});
    begin = end;
  }
  stages.push_back({std::numeric_limits<double>::infinity(), 0, 1 / settled});
  return stages;
}

}  // namespace spes::sim
