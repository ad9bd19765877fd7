#include "scenarios/faults.h"

#include <fmt/format.h>

#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/sync_builder.h"
#include "scenarios/topology_builder.h"

namespace spes::scenarios {

namespace {

using trainer::FaultKind;
using trainer::NodeId;

constexpr std::string_view kCoordinatorName = "coordinator";

NodeId OneNode(const std::string& text, int nodes) {
  if (text == kCoordinatorName) return trainer::kCoordinator;
  const std::vector<int> named = ParseNodes(text, nodes);
  if (named.size() > 1) {
    throw std::invalid_argument(
        fmt::format("'{}' names {} nodes; write an item for each", text, named.size()));
  }
  return named.front();
}

std::vector<NodeId> SomeNodes(const std::string& text, int nodes) {
  if (text == kCoordinatorName) return {trainer::kCoordinator};
  if (!text.empty()) return ParseNodes(text, nodes);
  std::vector<NodeId> all(static_cast<std::size_t>(nodes));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

trainer::Fault Build(const ScriptedFault& fault, int nodes) {
  const sim::Time open_end = fault.kind == FaultKind::kCrash ? sim::kNever : sim::Time{0};
  return {fault.at, fault.kind, OneNode(fault.node, nodes), fault.duration.value_or(open_end),
          fault.factor};
}

trainer::RandomFaults Build(const RandomFault& fault, int nodes) {
  return {fault.kind, SomeNodes(fault.nodes, nodes), fault.mean_between,
          fault.mean_duration.value_or(sim::Time{0}), fault.factor};
}

// One item of either list.
class Checker {
 public:
  Checker(const Scenario& scenario, const Origins& origins)
      : scenario_(scenario), origins_(origins) {}

  void Check(const ScriptedFault& fault, const std::string& path) const {
    if (fault.node.empty()) {
      origins_.Fail(path, "names no node; give its number as `node`, or coordinator");
    }
    NodeId node = 0;
    origins_.Blame(path + ".node", "", [&] { node = OneNode(fault.node, NodeCount(scenario_)); });
    CheckKind(fault.kind, fault.factor, fault.duration.has_value(), "duration", path);
    if (fault.kind == FaultKind::kCrash && !fault.duration && node == trainer::kCoordinator) {
      origins_.Fail(path,
                    "the coordinator crashes for good, and the run could not end without it; give "
                    "a duration");
    }
    origins_.Blame(path, "", [&] {
      trainer::Validate(Build(fault, NodeCount(scenario_)), NodeCount(scenario_));
    });
  }

  void Check(const RandomFault& fault, const std::string& path) const {
    origins_.Blame(path + ".nodes", "", [&] { SomeNodes(fault.nodes, NodeCount(scenario_)); });
    CheckKind(fault.kind, fault.factor, fault.mean_duration.has_value(), "mean_duration", path);
    if (fault.mean_between == sim::Time{0}) {
      origins_.Fail(path, "says not how often it comes; give mean_between");
    }
    if (!fault.mean_duration && fault.kind != FaultKind::kCorrupt) {
      origins_.Fail(path, fmt::format("says not how long {} lasts; give mean_duration",
                                      trainer::Name(fault.kind)));
    }
    origins_.Blame(path, "", [&] {
      trainer::Validate(Build(fault, NodeCount(scenario_)), NodeCount(scenario_));
    });
  }

 private:
  void CheckKind(FaultKind kind, double factor, bool lasts, const char* duration,
                 const std::string& path) const {
    const std::string name(trainer::Name(kind));
    const bool by_factor = kind == FaultKind::kSlow || kind == FaultKind::kClockJump;
    if (factor != 1 && !by_factor) {
      origins_.Fail(path + ".factor", fmt::format("is for slow and clock_jump, not for {}", name));
    }
    if (kind == FaultKind::kSlow && factor == 1) {
      origins_.Fail(path,
                    "slow needs a factor other than 1, as 3 for steps that take three times "
                    "as long");
    }
    if (kind == FaultKind::kCorrupt && lasts) {
      origins_.Fail(fmt::format("{}.{}", path, duration), "corrupt lasts no time; leave it out");
    }
    // The others break connections or lose messages, which a plan of transfers cannot make good.
    const sim::ExchangePattern pattern = scenario_.network.exchange.pattern;
    if (pattern != sim::ExchangePattern::kCoordinator && !by_factor) {
      origins_.Fail(path, fmt::format("{} cannot be with network.exchange.pattern: {}, which takes "
                                      "all nodes in every round; slow and clock_jump can, or use "
                                      "the pattern coordinator",
                                      name, sim::Name(pattern)));
    }
  }

  const Scenario& scenario_;
  const Origins& origins_;
};

}  // namespace

bool HasFaults(const Scenario& scenario) {
  return !scenario.faults.scripted.empty() || !scenario.faults.random.empty();
}

void ValidateFaults(const Scenario& scenario, const Origins& origins) {
  if (!HasFaults(scenario)) return;
  if (scenario.transport.kind == TransportKind::kTcp) {
    origins.Fail("faults",
                 "are simulated; with transport.kind: tcp they come by themselves: leave them out, "
                 "or set transport.kind to sim");
  }
  const Checker checker(scenario, origins);
  for (std::size_t i = 0; i < scenario.faults.scripted.size(); ++i) {
    checker.Check(scenario.faults.scripted[i], fmt::format("faults.scripted.{}", i));
  }
  for (std::size_t i = 0; i < scenario.faults.random.size(); ++i) {
    checker.Check(scenario.faults.random[i], fmt::format("faults.random.{}", i));
  }
}

trainer::FaultPlanConfig BuildFaults(const Scenario& scenario) {
  trainer::FaultPlanConfig config;
  const int nodes = NodeCount(scenario);
  for (const ScriptedFault& fault : scenario.faults.scripted) {
    config.scripted.push_back(Build(fault, nodes));
  }
  for (const RandomFault& fault : scenario.faults.random) {
    config.random.push_back(Build(fault, nodes));
  }
  config.seed = scenario.seed;
  return config;
}

}  // namespace spes::scenarios
