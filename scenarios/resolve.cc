#include "scenarios/resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "scenarios/nearest.h"
#include "scenarios/path_matrix.h"
#include "scenarios/yaml_tree.h"

namespace spes::scenarios {

namespace {

constexpr const char* kOnlySite = "lan";  // where no site has a name

void NameDomains(trainer::DataConfig& data) {
  for (trainer::DomainConfig& domain : data.domains) {
    if (domain.name.empty()) domain.name = domain.corpus;
  }
}

// Sites that are empty get a name. `all`: every path that is known.
void NameSites(Scenario& scenario, const std::vector<NetworkPath>& all) {
  std::string& coordinator = scenario.network.coordinator_site;
  if (coordinator.empty() && !all.empty()) coordinator = all.front().a;
  for (const NodeGroup& group : scenario.nodes.groups) {
    if (coordinator.empty()) coordinator = group.site;
  }
  if (coordinator.empty()) coordinator = kOnlySite;
  for (NodeGroup& group : scenario.nodes.groups) {
    if (group.site.empty()) group.site = coordinator;
  }
}

}  // namespace

void Resolve(Scenario& scenario, const Origins& origins) {
  NameDomains(scenario.data);

  NetworkSection& network = scenario.network;
  for (std::size_t i = 0; i < network.paths.size(); ++i) {
    if (network.paths[i].a.empty() || network.paths[i].b.empty()) {
      origins.Fail(fmt::format("network.paths.{}", i), "a path needs its two sites, a and b");
    }
  }
  const NetworkSection defaults;
  std::vector<NetworkPath> all = network.paths;
  if (!network.matrix.empty()) {
    for (NetworkPath& path :
         ReadPathMatrix(network.matrix, network.path_loss, network.path_queue_bdp)) {
      all.push_back(std::move(path));
    }
  } else if (network.path_loss != defaults.path_loss) {
    origins.Fail("network.path_loss", "is of the paths of network.matrix, which is not given");
  } else if (network.path_queue_bdp != defaults.path_queue_bdp) {
    origins.Fail("network.path_queue_bdp", "is of the paths of network.matrix, which is not given");
  }

  NameSites(scenario, all);
  std::set<std::string> known;
  for (const NetworkPath& path : all) known.insert({path.a, path.b});
  std::set<std::string> used;
  const auto use = [&](const std::string& site, const std::string& key) {
    used.insert(site);
    if (known.empty() || known.contains(site)) return;
    const std::vector<std::string> names(known.begin(), known.end());
    origins.Fail(
        key, fmt::format("the network has no site {}{}", Quoted(site), Suggestion(site, names)));
  };
  use(network.coordinator_site, "network.coordinator_site");
  for (std::size_t g = 0; g < scenario.nodes.groups.size(); ++g) {
    use(scenario.nodes.groups[g].site, fmt::format("nodes.groups.{}.site", g));
  }

  for (std::size_t i = network.paths.size(); i < all.size(); ++i) {
    const bool given = std::any_of(network.paths.begin(), network.paths.end(),
                                   [&](const NetworkPath& p) { return SamePair(p, all[i]); });
    if (!given && used.contains(all[i].a) && used.contains(all[i].b)) {
      network.paths.push_back(all[i]);
    }
  }
  network.matrix.clear();
  network.path_loss = defaults.path_loss;
  network.path_queue_bdp = defaults.path_queue_bdp;
}

}  // namespace spes::scenarios
