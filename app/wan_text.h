// What an emulated network says of itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/wan_run.h"
#include "sim/link_graph.h"
#include "sim/netns/host_namespaces.h"
#include "sim/ns3/emulation.h"
#include "sim/units.h"

namespace spes::app {

// Counts of an emulation, and what the machine says beside them.
struct WanCounts {
  sim::EmulationCounts emulation;
  std::int64_t device_drops = 0;  // packets that the hosts' devices dropped
  double wall_s = 0;              // since the start
  double cpu_s = 0;               // of this process, all threads, since the start
};

// A line for each host.
std::string WanTable(const WanPlan& plan, const sim::HostNamespaces& hosts);

// What has happened since `before`, in a line without its end.
std::string WanStatus(const WanCounts& before, const WanCounts& now);

// That real time cannot be kept: more than a hundredth of the frames since `before` were late;
// empty where it can.
std::string WanTooSlow(const WanCounts& before, const WanCounts& now);

// All of it, in a line without its end; `links` of the topology.
std::string WanVerdict(const WanCounts& counts, const std::vector<sim::Link>& links);

}  // namespace spes::app
