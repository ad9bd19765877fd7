#include "sim/traffic/plan.h"

#include <fmt/format.h>

#include <stdexcept>

#include "sim/traffic/dependents.h"

namespace spes::sim {
namespace {

template <typename... Args>
[[noreturn]] void Refuse(std::size_t transfer, fmt::format_string<Args...> format, Args&&... args) {
  throw std::invalid_argument(fmt::format("transfer {} of the traffic plan {}", transfer,
                                          fmt::format(format, std::forward<Args>(args)...)));
}

void CheckTransfer(const TrafficPlan& plan, std::size_t i, int hosts) {
  const Transfer& transfer = plan.transfers[i];
  for (const int host : {transfer.from, transfer.to}) {
    if (host < 0 || host >= hosts) {
      Refuse(i, "names host {}: there are {}, counted from 0", host, hosts);
    }
  }
  if (transfer.bytes < 0) Refuse(i, "has {} bytes: at least 0", transfer.bytes);
  if (transfer.from == transfer.to && transfer.bytes > 0) {
    Refuse(i, "carries {} bytes from host {} to itself: a joint has 0 bytes", transfer.bytes,
           transfer.from);
  }
  const int transfers = static_cast<int>(plan.transfers.size());
  for (const int before : transfer.after) {
    if (before < 0 || before >= transfers) {
      Refuse(i, "waits for transfer {}: there are {}, counted from 0", before, transfers);
    }
  }
}

// A. B. Kahn, Topological sorting of large networks (1962): what cannot be ordered waits in a
// circle.
void CheckOrder(const TrafficPlan& plan) {
  const Dependents dependents(plan);
  std::vector<int> waits, startable;
  for (const Transfer& transfer : plan.transfers) {
    if (transfer.after.empty()) startable.push_back(static_cast<int>(waits.size()));
    waits.push_back(static_cast<int>(transfer.after.size()));
  }
  std::size_t over = 0;
  for (; !startable.empty(); ++over) {
    const int done = startable.back();
    startable.pop_back();
    for (const int next : dependents.Of(done)) {
      if (--waits[static_cast<std::size_t>(next)] == 0) startable.push_back(next);
    }
  }
  if (over == plan.transfers.size()) return;
  for (std::size_t i = 0;; ++i) {
    if (waits[i] > 0) Refuse(i, "can never start: it waits for one that waits for it in turn");
  }
}

}  // namespace

void Validate(const TrafficPlan& plan, int hosts) {
  for (std::size_t i = 0; i < plan.transfers.size(); ++i) CheckTransfer(plan, i, hosts);
  CheckOrder(plan);
}

std::vector<HostBytes> BytesOfHosts(const TrafficPlan& plan, int hosts) {
  std::vector<HostBytes> bytes(static_cast<std::size_t>(hosts));
  for (const Transfer& transfer : plan.transfers) {
    bytes[static_cast<std::size_t>(transfer.from)].up += transfer.bytes;
    bytes[static_cast<std::size_t>(transfer.to)].down += transfer.bytes;
  }
  return bytes;
}

}  // namespace spes::sim
