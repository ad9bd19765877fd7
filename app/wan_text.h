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

// Further behind than this, an emulation is not in real time.
inline constexpr sim::Time kMostLag = std::chrono::milliseconds(20);

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

// That real time cannot be kept.
std::string WanTooSlow(const WanCounts& counts);

// All of it, in a line without its end; `links` of the topology.
std::string WanVerdict(const WanCounts& counts, const std::vector<sim::Link>& links);

}  // namespace spes::app
