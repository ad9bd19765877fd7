#include "scenarios/exchange.h"

#include <fmt/format.h>

#include <string>

#include "scenarios/sync_builder.h"
#include "scenarios/topology_builder.h"

namespace spes::scenarios {

void ValidateExchange(const Scenario& scenario, const Origins& origins) {
  using sim::ExchangePattern;
  const ExchangeSection& exchange = scenario.network.exchange;
  const std::string pattern(sim::Name(exchange.pattern));
  if (exchange.pattern == ExchangePattern::kCoordinators) {
    if (exchange.coordinators.empty()) {
      origins.Fail("network.exchange.coordinators",
                   "names no site; the pattern coordinators needs those of the further ones");
    }
  } else if (!exchange.coordinators.empty()) {
    origins.Fail("network.exchange.coordinators",
                 fmt::format("is for the pattern coordinators, and the pattern is {}", pattern));
  }
  if (exchange.pattern == ExchangePattern::kCoordinator) {
    if (exchange.sends > 0) {
      origins.Fail("network.exchange.sends",
                   "is for the patterns coordinators, ring, direct and tree; the pattern is "
                   "coordinator");
    }
    return;
  }
  if (scenario.sync.quorum > 0 && scenario.sync.quorum < NodeCount(scenario)) {
    origins.Fail("sync.quorum",
                 fmt::format("is {}, but an exchange by {} takes all nodes; set it to 0, or use "
                             "network.exchange.pattern: coordinator",
                             scenario.sync.quorum, pattern));
  }
  if (scenario.sync.deadline) {
    origins.Fail("sync.deadline",
                 fmt::format("ends rounds without some nodes, but an exchange by {} takes all of "
                             "them; leave it out, or use network.exchange.pattern: coordinator",
                             pattern));
  }
}

trainer::ExchangeConfig BuildExchange(const Scenario& scenario, const sim::Topology& topology) {
  trainer::ExchangeConfig config;
  config.pattern = scenario.network.exchange.pattern;
  const int nodes = NodeCount(scenario);
  for (int node = 0; node < nodes; ++node) {
    config.sites.push_back(topology.hosts[static_cast<std::size_t>(node)].site);
  }
  config.coordinators = {nodes};
  const int hosts = static_cast<int>(topology.hosts.size());
  const int further = static_cast<int>(scenario.network.exchange.coordinators.size());
  for (int host = hosts - further; host < hosts; ++host) config.coordinators.push_back(host);
  config.merge = scenario.sync.merge;
  config.schedule = BuildSchedule(scenario);
  config.coding = {scenario.sync.up, scenario.sync.down,
                   scenario.sync.moments == trainer::MomentsRule::kAveraged};
  config.steps_experts =
      scenario.sync.experts.outer.nesterov || scenario.sync.method == SyncMethod::kDataParallel;
  return config;
}

}  // namespace spes::scenarios
