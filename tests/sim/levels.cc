#include "tests/sim/levels.h"

#include <ostream>

#include "sim/fluid/fluid_network.h"

#ifdef SPES_NS3
#include "sim/ns3/packet_network.h"
#endif

namespace spes::sim {

std::vector<Level> Levels() {
  std::vector<Level> levels = {{.name = "ideal", .make = MakeIdealNetwork},
                               {.name = "fluid", .make = MakeFluidNetwork, .packets = true}};
#ifdef SPES_NS3
  levels.push_back({.name = "packet", .make = MakePacketNetwork, .packets = true});
  levels.push_back({.name = "coarse", .make = MakeCoarseNetwork, .packets = true});
  levels.push_back({.name = "hybrid", .make = MakeHybridNetwork, .packets = true});
#endif
  return levels;
}

std::string LevelName(const testing::TestParamInfo<Level>& info) { return info.param.name; }

Topology Star(int n, const AccessLink& link) {
  Topology topology;
  for (int i = 0; i < n; ++i) {
    topology.hosts.push_back({.name = "host" + std::to_string(i), .site = 0, .link = link});
  }
  topology.sites = {"here"};
  topology.paths = {{SitePath{}}};
  return topology;
}

void PrepareAll(Network& network, const Topology& topology) {
  const int hosts = static_cast<int>(topology.hosts.size());
  for (int a = 0; a < hosts; ++a) {
    for (int b = 0; b < hosts; ++b) {
      if (a != b) network.Prepare(a, b, 1);
    }
  }
}

FlowResult Transfer(Network& network, const Flow& flow) {
  FlowResult result;
  bool ended = false;
  network.Start(flow, [&](const FlowResult& r) {
    result = r;
    ended = true;
  });
  while (!ended) network.AdvanceTo(kNever);
  return result;
}

}  // namespace spes::sim
