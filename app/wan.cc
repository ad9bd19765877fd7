#include "app/wan.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <stdexcept>

#include "app/make_network.h"
#include "app/wan_run.h"
#include "scenarios/nearest.h"
#include "scenarios/reader.h"
#include "scenarios/topology_builder.h"

namespace spes::app {

namespace {

// "coordinator", "node0", …, as the namespaces are called behind their prefix.
std::vector<std::string> HostNames(int nodes) {
  std::vector<std::string> names;
  for (int node = 0; node < nodes; ++node) names.push_back("node" + std::to_string(node));
  names.push_back("coordinator");
  return names;
}

std::vector<int> Chosen(const std::vector<std::string>& only, int nodes) {
  const std::vector<std::string> names = HostNames(nodes);
  std::vector<int> hosts;
  for (const std::string& name : only) {
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) {
      throw std::invalid_argument(fmt::format("--only {}: there is no such host{}", name,
                                              scenarios::Suggestion(name, names)));
    }
    const int host = static_cast<int>(found - names.begin());
    if (std::ranges::find(hosts, host) != hosts.end()) {
      throw std::invalid_argument(fmt::format("--only: {} is named twice", name));
    }
    hosts.push_back(host);
  }
  for (int host = 0; only.empty() && host <= nodes; ++host) hosts.push_back(host);
  return hosts;
}

}  // namespace

WanCommand::WanCommand(CLI::App& app)
    : wan_(app.add_subcommand(
          "wan",
          "The network in real time: a network namespace for each host, for real programs")) {
  wan_->add_option("SCENARIO", scenario_, "YAML file with the network")->required();
  wan_->add_option("COMMAND", command_,
                   "Behind --: run it in every host's namespace, and end with it; it finds "
                   "SPES_HOST, SPES_ADDRESS and SPES_COORDINATOR in its environment");
  wan_->add_option("--set", overrides_, "Change one key, as for a run; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  wan_->add_option("--only", only_, "Run the command on these hosts alone: coordinator,node0")
      ->type_name("HOSTS")
      ->delimiter(',')
      ->allow_extra_args(false);
  wan_->add_flag("--halt-on-failure", halt_on_failure_,
                 "End the commands of all hosts as soon as that of one has failed");
  wan_->add_option("--prefix", prefix_, "What the namespaces' names begin with")
      ->type_name("NAME")
      ->capture_default_str();
  wan_->add_option("--seed", seed_, "Seed of everything random")->type_name("S");
}

bool WanCommand::parsed() const { return wan_->parsed(); }

int WanCommand::Run() const {
  std::vector<std::string> overrides = overrides_;
  if (!seed_.empty()) overrides.push_back("seed=" + seed_);
  const scenarios::Scenario scenario = scenarios::ReadScenario(scenario_, overrides);
  if (!scenario.network.background.empty()) {
    throw std::invalid_argument(
        "network.background: wan carries what real programs send, and nothing else; leave it out, "
        "or use cross_traffic, which takes its rate off a link");
  }
  if (!scenario.network.exchange.coordinators.empty()) {
    throw std::invalid_argument("network.exchange.coordinators: wan knows one coordinator");
  }
  if (!only_.empty() && command_.empty()) {
    throw std::invalid_argument("--only: without a command behind -- there is nothing to restrict");
  }
  if (halt_on_failure_ && command_.empty()) {
    throw std::invalid_argument("--halt-on-failure: without a command behind -- nothing can fail");
  }
  const int nodes = scenarios::NodeCount(scenario);
  return RunWan({.name = scenario.name,
                 .topology = scenarios::BuildTopology(scenario),
                 .tcp = RunTcp(scenario),
                 .prefix = prefix_,
                 .hosts = Chosen(only_, nodes),
                 .command = command_,
                 .halt_on_failure = halt_on_failure_});
}

}  // namespace spes::app
