// Tables of the paths between sites.
#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.h"

namespace spes::scenarios {

// Whether both are the path between the same two sites.
bool SamePair(const NetworkPath& x, const NetworkPath& y);

// Reads a CSV with the columns a, b, rtt_ms (the round trip) and gbps, in this order: one pair of
// sites in a line, in either order. Empty lines and lines that begin with # are skipped. `loss` and
// `queue_bdp` are those of every path. Throws std::invalid_argument with one line "file:line: …":
// unreadable, another header, a line that is not of this form, a number that is negative or not
// finite, a rate of 0, a pair that contradicts an earlier line (the same again is allowed).
std::vector<NetworkPath> ReadPathMatrix(const std::string& file, double loss, double queue_bdp);

}  // namespace spes::scenarios
