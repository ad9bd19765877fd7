#include "scenarios/validate_network.h"

#include <fmt/format.h>

#include <string>

#include "scenarios/capacity_trace.h"
#include "scenarios/topology_builder.h"
#include "sim/link_graph.h"

namespace spes::scenarios {

namespace {

class Checker {
 public:
  Checker(const Scenario& scenario, const Origins& origins)
      : scenario_(scenario), network_(scenario.network), origins_(origins) {}

  void Check() {
    origins_.Blame("network.tcp", "", [&] { network_.tcp.Validate(); });
    const std::vector<NodeGroup>& groups = scenario_.nodes.groups;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      CheckLink(groups[g].link, fmt::format("nodes.groups.{}.link", g));
    }
    CheckLink(network_.coordinator_link, "network.coordinator_link");
    for (std::size_t i = 0; i < network_.sites.size(); ++i) {
      CheckLink(network_.sites[i].link, fmt::format("network.sites.{}.link", i));
    }
    for (std::size_t i = 0; i < network_.paths.size(); ++i) {
      const NetworkPath& path = network_.paths[i];
      const std::string key = fmt::format("network.paths.{}", i);
      CheckTrace(path.trace_file, key + ".trace");
      CheckTrace(path.trace_back_file, key + ".trace_back");
      CheckConditions(path.conditions, key);
    }
    origins_.Blame("network", "", [&] { sim::LinkGraph(BuildTopology(scenario_), network_.tcp); });
  }

 private:
  void CheckLink(const LinkSection& link, const std::string& key) const {
    CheckTrace(link.down_trace_file, key + ".down_trace");
    CheckTrace(link.up_trace_file, key + ".up_trace");
    CheckConditions(link.conditions, key);
  }

  void CheckTrace(const std::string& file, const std::string& key) const {
    if (file.empty()) return;
    origins_.Blame(key, "", [&] { ReadCapacityTrace(file, network_.trace_interval); });
  }

  void CheckConditions(const sim::Conditions& conditions, const std::string& key) const {
    origins_.Blame(key + ".conditions", "it ", [&] { conditions.Validate("it"); });
  }

  const Scenario& scenario_;
  const NetworkSection& network_;
  const Origins& origins_;
};

}  // namespace

void ValidateNetwork(const Scenario& scenario, const Origins& origins) {
  Checker(scenario, origins).Check();
}

}  // namespace spes::scenarios
