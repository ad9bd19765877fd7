// A flow of the network as the log keeps it.
#pragma once

#include <cstdint>
#include <string>

#include "analysis/records.h"
#include "sim/network.h"

namespace spes::trainer {

// `from`, `to`: as FlowRecord counts them. `message`: what the flow carried.
analysis::FlowRecord MakeFlowRecord(const sim::FlowResult& result, std::int32_t from,
                                    std::int32_t to, std::string message, std::int32_t round);

}  // namespace spes::trainer
