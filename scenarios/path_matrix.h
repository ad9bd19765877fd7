// Tables of the paths between sites.
#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.h"

namespace spes::scenarios {

// Whether both are the path between the same two sites.
bool SamePair(const NetworkPath& x, const NetworkPath& y);

// Reads a CSV with the columns a, b, rtt_ms (the round trip) and gbps, in this order: one pair of
// sites in a line, in either order. What `rest` has besides (loss, buffers) every path has. Throws
// std::invalid_argument with one line "file:line: …": as ReadCsv, another header, a line that is
// not of this form, a number that is negative or not finite, a rate of 0, a pair that contradicts
// an earlier line (the same again is allowed).
std::vector<NetworkPath> ReadPathList(const std::string& file, const NetworkPath& rest);

// Reads two square CSVs (square_matrix.h): round trips in ms, symmetric, and rates in Mbps from the
// row's site to the column's; `rates` may be empty, then every path has the rate of `rest`, which
// says the other values of the paths too. A blank pair has no path. The diagonal is the path within
// a site; without a round trip there it takes no time, without a rate it has 100 Gbps. Throws
// std::invalid_argument with one line "file:line: …": as ReadSquareMatrix and CheckSymmetric, other
// sites in one file than in the other, a pair with one of the two values only, a rate of 0.
std::vector<NetworkPath> ReadPathMatrices(const std::string& latencies, const std::string& rates,
                                          const NetworkPath& rest);

}  // namespace spes::scenarios
