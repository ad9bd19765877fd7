#include "scenarios/topology_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace spes::scenarios {

namespace {

// One group even where the scenario has none.
std::vector<NodeGroup> Groups(const Scenario& scenario) {
  if (!scenario.nodes.groups.empty()) return scenario.nodes.groups;
  NodeGroup alike;
  alike.count = scenario.nodes.count;
  alike.site = scenario.network.coordinator_site;
  return {alike};
}

bool Agree(const sim::SitePath& x, const sim::SitePath& y) {
  return x.rtt == y.rtt && x.bps == y.bps && x.loss == y.loss && x.queue_bdp == y.queue_bdp;
}

}  // namespace

int NodeCount(const Scenario& scenario) {
  int count = 0;
  for (const NodeGroup& group : Groups(scenario)) count += group.count;
  return count;
}

std::vector<double> NodeSpeeds(const Scenario& scenario) {
  std::vector<double> speeds;
  for (const NodeGroup& group : Groups(scenario)) {
    speeds.insert(speeds.end(), static_cast<std::size_t>(group.count), group.speed);
  }
  return speeds;
}

sim::Topology BuildTopology(const Scenario& scenario) {
  sim::Topology topology;
  // The index of a site, which is new or known.
  const auto site = [&topology](const std::string& name) {
    std::vector<std::string>& sites = topology.sites;
    const auto index = std::find(sites.begin(), sites.end(), name) - sites.begin();
    if (index == std::ssize(sites)) sites.push_back(name);
    return static_cast<int>(index);
  };
  for (const NodeGroup& group : Groups(scenario)) {
    for (int i = 0; i < group.count; ++i) {
      topology.hosts.push_back(
          {fmt::format("node {}", topology.hosts.size()), site(group.site), group.link});
    }
  }
  const NetworkSection& network = scenario.network;
  topology.hosts.push_back(
      {"coordinator", site(network.coordinator_site), network.coordinator_link});

  const std::size_t sites = topology.sites.size();
  std::vector<std::vector<std::optional<sim::SitePath>>> paths(
      sites, std::vector<std::optional<sim::SitePath>>(sites));
  for (const NetworkPath& path : network.paths) {
    const auto index = [&](const std::string& name) {
      return static_cast<std::size_t>(
          std::find(topology.sites.begin(), topology.sites.end(), name) - topology.sites.begin());
    };
    const std::size_t a = index(path.a), b = index(path.b);
    if (a == sites || b == sites) continue;  // nobody stands there
    const sim::SitePath value{path.rtt, path.bps, path.loss, path.queue_bdp};
    if (paths[a][b] && !Agree(*paths[a][b], value)) {
      throw std::invalid_argument(
          fmt::format("network: {} and {} have two paths with different values", path.a, path.b));
    }
    paths[a][b] = paths[b][a] = value;
  }
  topology.paths.assign(sites, std::vector<sim::SitePath>(sites));
  for (std::size_t a = 0; a < sites; ++a) {
    for (std::size_t b = 0; b < sites; ++b) {
      if (paths[a][b]) {
        topology.paths[a][b] = *paths[a][b];
      } else if (a != b) {
        throw std::invalid_argument(
            fmt::format("network: there is no path between {} and {}; give it in network.paths or "
                        "network.matrix",
                        topology.sites[a], topology.sites[b]));
      }
    }
  }
  topology.Validate();
  return topology;
}

}  // namespace spes::scenarios
