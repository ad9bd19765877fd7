// Three hosts at two sites, all links unequal.
#pragma once

#include "sim/topology.h"

namespace spes::sim {

inline Topology TwoSites() {
  using namespace std::chrono_literals;
  Topology topology;
  topology.sites = {"east", "west"};
  const SitePath local{.rtt = 2ms, .bps = 10e9}, wide{.rtt = 60ms, .bps = 0.5e9, .loss = 0.01};
  topology.paths = {{local, wide}, {wide, local}};
  topology.hosts = {
      {.name = "a", .site = 0, .link = {.down_bps = 200e6, .up_bps = 20e6, .rtt = 10ms}},
      {.name = "b", .site = 0, .link = {.down_bps = 1e9, .up_bps = 1e9, .rtt = 4ms, .loss = 0.1}},
      {.name = "c", .site = 1, .link = {.down_bps = 100e6, .up_bps = 2e9, .rtt = 20ms}}};
  return topology;
}

}  // namespace spes::sim
