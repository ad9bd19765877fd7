#include "scenarios/resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

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

// Two sites to each path, and one path to each two sites.
void CheckPaths(const std::vector<NetworkPath>& paths, const Origins& origins) {
  std::set<std::pair<std::string, std::string>> pairs;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const NetworkPath& path = paths[i];
    const std::string key = fmt::format("network.paths.{}", i);
    if (path.a.empty() || path.b.empty()) origins.Fail(key, "a path needs its two sites, a and b");
    if (!pairs.insert(std::minmax(path.a, path.b)).second) {
      origins.Fail(key, fmt::format("another path is between {} and {} as well", Quoted(path.a),
                                    Quoted(path.b)));
    }
    if (path.a == path.b && (path.bps_back || !path.trace_back_file.empty())) {
      origins.Fail(key,
                   "the path within a site has no way back; leave out rate_back and trace_back");
    }
  }
}

// The paths of whichever matrix there is.
std::vector<NetworkPath> MatrixPaths(const NetworkSection& network, const Origins& origins) {
  NetworkPath rest;
  rest.bps = network.path_bps;
  rest.loss = network.path_loss;
  rest.loss_burst = network.path_loss_burst;
  rest.queue_bdp = network.path_queue_bdp;
  const bool list = !network.matrix.empty(), square = !network.latency_matrix.empty();
  if (list && square) {
    origins.Fail("network.latency_matrix", "is given beside network.matrix; one of them says it");
  }
  if (!square && !network.rate_matrix.empty()) {
    origins.Fail("network.rate_matrix", "needs the round trips of network.latency_matrix");
  }
  const NetworkSection defaults;
  if ((list || !network.rate_matrix.empty()) && network.path_bps != defaults.path_bps) {
    origins.Fail("network.path_rate", "has no meaning beside a matrix that says the rates");
  }
  if (list) return ReadPathList(network.matrix, rest);
  if (square) return ReadPathMatrices(network.latency_matrix, network.rate_matrix, rest);
  const auto unused = [&](const char* key, double value, double initial) {
    if (value == initial) return;
    origins.Fail(key, "is of the paths of network.matrix or latency_matrix, which is not given");
  };
  unused("network.path_rate", network.path_bps, defaults.path_bps);
  unused("network.path_loss", network.path_loss, defaults.path_loss);
  unused("network.path_loss_burst", network.path_loss_burst, defaults.path_loss_burst);
  unused("network.path_queue_bdp", network.path_queue_bdp, defaults.path_queue_bdp);
  return {};
}

void ForgetMatrices(NetworkSection& network) {
  const NetworkSection defaults;
  network.matrix.clear();
  network.latency_matrix.clear();
  network.rate_matrix.clear();
  network.path_bps = defaults.path_bps;
  network.path_loss = defaults.path_loss;
  network.path_loss_burst = defaults.path_loss_burst;
  network.path_queue_bdp = defaults.path_queue_bdp;
}

// Sites that are empty get a name. `all`: every path that is known.
void NameSites(Scenario& scenario, const std::vector<NetworkPath>& all) {
  std::string& coordinator = scenario.network.coordinator_site;
  if (coordinator.empty() && !all.empty()) coordinator = all.front().a;
  for (const NodeGroup& group : scenario.nodes.groups) {
    if (coordinator.empty()) coordinator = group.site;
  }
  if (coordinator.empty()) coordinator = kOnlySite;
  const auto name = [&](std::string& site) {
    if (site.empty()) site = coordinator;
  };
  for (NodeGroup& group : scenario.nodes.groups) name(group.site);
  for (BackgroundSection& background : scenario.network.background) {
    name(background.from);
    name(background.to);
  }
}

// The sites where somebody stands. Each must be known from a path where there are paths; traffic in
// the background must be between sites that are known from a path or from somebody who trains.
std::set<std::string> UsedSites(const Scenario& scenario, const std::vector<NetworkPath>& all,
                                const Origins& origins) {
  std::set<std::string> known;
  for (const NetworkPath& path : all) known.insert({path.a, path.b});
  const auto check = [&](const std::string& site, const std::string& key) {
    if (known.empty() || known.contains(site)) return;
    const std::vector<std::string> names(known.begin(), known.end());
    origins.Fail(
        key, fmt::format("the network has no site {}{}", Quoted(site), Suggestion(site, names)));
  };
  std::set<std::string> used;
  const auto use = [&](const std::string& site, const std::string& key) {
    check(site, key);
    used.insert(site);
  };
  use(scenario.network.coordinator_site, "network.coordinator_site");
  const std::vector<NodeGroup>& groups = scenario.nodes.groups;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    use(groups[g].site, fmt::format("nodes.groups.{}.site", g));
  }

  const std::vector<std::string>& further = scenario.network.exchange.coordinators;
  for (const std::string& site : further) use(site, "network.exchange.coordinators");

  known.insert(used.begin(), used.end());
  const std::vector<BackgroundSection>& background = scenario.network.background;
  for (std::size_t i = 0; i < background.size(); ++i) {
    use(background[i].from, fmt::format("network.background.{}.from", i));
    use(background[i].to, fmt::format("network.background.{}.to", i));
  }
  const std::vector<NetworkSite>& sites = scenario.network.sites;
  std::set<std::string> names;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    const std::string key = fmt::format("network.sites.{}.name", i);
    if (sites[i].name.empty()) origins.Fail(key, "a site needs its name");
    check(sites[i].name, key);
    if (!names.insert(sites[i].name).second) {
      origins.Fail(key, fmt::format("another site is called {} as well", Quoted(sites[i].name)));
    }
  }
  return used;
}

}  // namespace

void Resolve(Scenario& scenario, const Origins& origins) {
  NameDomains(scenario.data);

  NetworkSection& network = scenario.network;
  CheckPaths(network.paths, origins);
  std::vector<NetworkPath> all = network.paths;
  for (NetworkPath& path : MatrixPaths(network, origins)) all.push_back(std::move(path));
  NameSites(scenario, all);
  const std::set<std::string> used = UsedSites(scenario, all, origins);

  const bool through = network.routing == sim::Routing::kShortest;  // through other sites
  const std::size_t given = network.paths.size();
  for (std::size_t i = given; i < all.size(); ++i) {
    const bool again = std::any_of(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(given),
                                   [&](const NetworkPath& p) { return SamePair(p, all[i]); });
    if (!again && (through || (used.contains(all[i].a) && used.contains(all[i].b)))) {
      network.paths.push_back(all[i]);
    }
  }
  ForgetMatrices(network);
}

}  // namespace spes::scenarios
