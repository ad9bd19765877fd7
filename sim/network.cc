#include "sim/network.h"

#include <fmt/format.h>

#include <stdexcept>

namespace spes::sim {

std::string_view Name(FlowOutcome outcome) {
  switch (outcome) {
    case FlowOutcome::kDone:
      return "done";
    case FlowOutcome::kCancelled:
      return "cancelled";
    case FlowOutcome::kStalled:
      return "stalled";
    case FlowOutcome::kFailed:
      return "failed";
  }
  throw std::logic_error("an unknown flow outcome");
}

void CheckFlow(const Flow& flow, const LinkGraph& graph) {
  const int hosts = graph.hosts();
  for (const int host : {flow.from, flow.to}) {
    if (host < 0 || host >= hosts) {
      throw std::invalid_argument(
          fmt::format("a flow names host {}: there are {}, counted from 0", host, hosts));
    }
  }
  if (flow.from == flow.to) {
    throw std::invalid_argument(
        fmt::format("a flow from host {} to itself: it needs two hosts", flow.from));
  }
  if (flow.bytes < 0) {
    throw std::invalid_argument(fmt::format("a flow of {} bytes: at least 0", flow.bytes));
  }
  if (flow.streams < 1) {
    throw std::invalid_argument(fmt::format("a flow with {} streams: at least 1", flow.streams));
  }
}

}  // namespace spes::sim
