#include "scenarios/topology_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "scenarios/capacity_trace.h"

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

class Builder {
 public:
  explicit Builder(const Scenario& scenario) : scenario_(scenario), network_(scenario.network) {}

  sim::Topology Build() {
    topology_.routing = network_.routing;
    AddHosts();
    if (network_.routing == sim::Routing::kShortest) {
      for (const NetworkPath& path : network_.paths) Site(path.a), Site(path.b);
    }
    AddUplinks();
    AddPaths();
    return std::move(topology_);
  }

 private:
  // The index of a site, which is new or known.
  int Site(const std::string& name) {
    const auto [found, fresh] = index_.emplace(name, static_cast<int>(topology_.sites.size()));
    if (fresh) topology_.sites.push_back(name);
    return found->second;
  }

  // Null for no file. One trace of all who name the same file.
  std::shared_ptr<const sim::RateTrace> Trace(const std::string& file) {
    if (file.empty()) return nullptr;
    std::shared_ptr<const sim::RateTrace>& trace = traces_[file];
    if (!trace) trace = ReadCapacityTrace(file, network_.trace_interval);
    return trace;
  }

  sim::AccessLink Access(const LinkSection& section) {
    sim::AccessLink link = section;
    link.down_trace = Trace(section.down_trace_file);
    link.up_trace = Trace(section.up_trace_file);
    return link;
  }

  void AddHosts() {
    for (const NodeGroup& group : Groups(scenario_)) {
      const sim::AccessLink link = Access(group.link);
      for (int i = 0; i < group.count; ++i) {
        topology_.hosts.push_back(
            {fmt::format("node {}", topology_.hosts.size()), Site(group.site), link});
      }
    }
    topology_.hosts.push_back(
        {"coordinator", Site(network_.coordinator_site), Access(network_.coordinator_link)});
    for (std::size_t i = 0; i < network_.background.size(); ++i) {
      const BackgroundSection& background = network_.background[i];
      const sim::AccessLink link{.down_bps = background.link_bps, .up_bps = background.link_bps};
      topology_.hosts.push_back(
          {fmt::format("background {} sender", i), Site(background.from), link});
      topology_.hosts.push_back(
          {fmt::format("background {} receiver", i), Site(background.to), link});
    }
    for (const std::string& site : network_.exchange.coordinators) {
      topology_.hosts.push_back({fmt::format("coordinator {}", ++coordinators_), Site(site),
                                 Access(network_.coordinator_link)});
    }
    peopled_ = topology_.sites.size();
  }

  void AddUplinks() {
    for (const NetworkSite& site : network_.sites) {
      const auto found = index_.find(site.name);
      if (found == index_.end()) continue;  // nobody stands there
      topology_.uplinks.resize(topology_.sites.size());
      topology_.uplinks[static_cast<std::size_t>(found->second)] = Access(site.link);
    }
  }

  void AddPaths() {
    const std::size_t sites = topology_.sites.size();
    topology_.paths.assign(sites, std::vector<std::optional<sim::SitePath>>(sites));
    for (std::size_t s = 0; s < peopled_; ++s) topology_.paths[s][s] = sim::SitePath{};
    for (const NetworkPath& path : network_.paths) {
      const auto a = index_.find(path.a), b = index_.find(path.b);
      if (a == index_.end() || b == index_.end()) continue;  // nobody stands there
      sim::SitePath line{.rtt = path.rtt,
                         .bps = path.bps,
                         .loss = path.loss,
                         .loss_burst = path.loss_burst,
                         .queue_bdp = path.queue_bdp,
                         .trace = Trace(path.trace_file),
                         .conditions = path.conditions};
      const auto from = static_cast<std::size_t>(a->second);
      const auto to = static_cast<std::size_t>(b->second);
      topology_.paths[from][to] = line;
      if (from == to) continue;
      if (path.bps_back || !path.trace_back_file.empty()) {
        line.bps = path.bps_back.value_or(path.bps);
        line.trace = Trace(path.trace_back_file);
      }
      topology_.paths[to][from] = std::move(line);
    }
  }

  const Scenario& scenario_;
  const NetworkSection& network_;
  sim::Topology topology_;
  std::map<std::string, int> index_;  // of sites
  int coordinators_ = 1;
  std::size_t peopled_ = 0;  // sites with hosts; they come first
  std::map<std::string, std::shared_ptr<const sim::RateTrace>> traces_;
};

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

sim::Topology BuildTopology(const Scenario& scenario) { return Builder(scenario).Build(); }

std::vector<sim::BackgroundFlow> BuildBackground(const Scenario& scenario) {
  std::vector<sim::BackgroundFlow> flows;
  int host = NodeCount(scenario) + 1;  // behind the coordinator
  for (const BackgroundSection& background : scenario.network.background) {
    flows.insert(flows.end(), static_cast<std::size_t>(background.flows),
                 {.from = host,
                  .to = host + 1,
                  .streams = background.streams,
                  .bytes = background.size_bytes,
                  .mean_pause = background.mean_pause});
    host += 2;
  }
  return flows;
}

}  // namespace spes::scenarios
