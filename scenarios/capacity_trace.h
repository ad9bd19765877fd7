// Recorded capacities of links.
#pragma once

#include <memory>
#include <string>

#include "sim/conditions.h"
#include "sim/units.h"

namespace spes::scenarios {

// Reads a trace in the format of Mahimahi's mm-link (its manual page, mm-link(1)): one whole number
// in a line, the millisecond at which one packet of 1500 bytes can pass; not decreasing, the same
// one again for each further packet. The trace starts again after the last one. The capacity is the
// average over each `interval` (positive), the last one as long as is left. Throws
// std::invalid_argument with one line "file:line: …": unreadable, empty, a line that is no whole
// number from 0 to 1e10, one below the line before, no time at all.
std::shared_ptr<const sim::RateTrace> ReadCapacityTrace(const std::string& file,
                                                        sim::Time interval);

}  // namespace spes::scenarios
