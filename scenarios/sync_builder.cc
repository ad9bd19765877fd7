#include "scenarios/sync_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <stdexcept>
#include <string_view>

#include "scenarios/cost_builder.h"
#include "scenarios/topology_builder.h"
#include "trainer/data/keyed_random.h"

namespace spes::scenarios {

namespace {

std::function<sim::Time(std::int64_t)> CodingTime(const Scenario& scenario) {
  return [rate = scenario.nodes.coding_bytes_per_s](std::int64_t bytes) {
    return sim::FromSeconds(static_cast<double>(bytes) / rate);
  };
}

// All but the evaluation itself.
trainer::TrustConfig BuildTrust(const Scenario& scenario) {
  const TrustSection& section = scenario.sync.trust;
  trainer::TrustConfig trust;
  trust.norm_bound = section.norm_bound;
  trust.window = section.window;
  trust.strikes = section.strikes;
  trust.margin = section.margin;
  if (section.held_out > 0) trust.held_out_time = EvaluationTime(scenario, section.held_out);
  if (scenario.sync.method == SyncMethod::kLocal) {
    trust.step_size = [optimizer = BuildOptimizer(scenario)](std::int64_t step) {
      return trainer::LearningRate(optimizer, step);
    };
  }
  return trust;
}

// The node's group, by its number.
trainer::PoisonConfig BuildPoison(const Scenario& scenario, int node) {
  int first = 0;
  for (const NodeGroup& group : scenario.nodes.groups) {
    if (node < first + group.count) {
      trainer::PoisonConfig poison = group.poison;
      poison.seed = trainer::Key(scenario.seed, node);
      return poison;
    }
    first += group.count;
  }
  return {};
}

// One number at the front of `text`, which is shortened by it.
int TakeNumber(std::string_view& text, std::string_view all) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number < 0) {
    throw std::invalid_argument(fmt::format("'{}' does not name nodes, as 3 or 0-3,7 do", all));
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

}  // namespace

std::vector<int> ParseNodes(const std::string& text, int nodes) {
  std::vector<int> parsed;
  std::string_view rest = text;
  while (true) {
    const int first = TakeNumber(rest, text);
    int last = first;
    if (rest.starts_with('-')) {
      rest.remove_prefix(1);
      last = TakeNumber(rest, text);
    }
    if (last >= nodes || first > last) {
      throw std::invalid_argument(
          fmt::format("'{}' names nodes that are not there; they are 0 to {}", text, nodes - 1));
    }
    for (int node = first; node <= last; ++node) parsed.push_back(node);
    if (rest.empty()) break;
    if (!rest.starts_with(',')) TakeNumber(rest, text);  // fails
    rest.remove_prefix(1);
  }
  std::sort(parsed.begin(), parsed.end());
  if (std::adjacent_find(parsed.begin(), parsed.end()) != parsed.end()) {
    throw std::invalid_argument(fmt::format("'{}' names a node twice", text));
  }
  return parsed;
}

trainer::ScheduleConfig BuildSchedule(const Scenario& scenario) {
  trainer::ScheduleConfig schedule = scenario.sync.schedule;
  schedule.total_steps = scenario.training.steps;
  return schedule;
}

trainer::AllocationConfig BuildAllocationConfig(const Scenario& scenario) {
  const SyncSection& sync = scenario.sync;
  const int nodes = NodeCount(scenario);
  trainer::AllocationConfig config;
  config.kind = sync.allocation;
  config.replicas = sync.replicas;
  for (const std::string& owners : sync.owners) config.owners.push_back(ParseNodes(owners, nodes));
  for (const FrozenSection& frozen : sync.frozen) {
    config.frozen_shared.push_back({ParseNodes(frozen.nodes, nodes), frozen.parts});
  }
  config.rotate_every = sync.rotate.every;
  config.moments = sync.rotate.moments;
  return config;
}

std::vector<trainer::NodeCapacity> BuildCapacities(const Scenario& scenario,
                                                   const trainer::BlockTable& table) {
  // 4P + 12·tr bytes in float32 (the world, and gradients and two moments of what is trained): what
  // the shared parameters leave is for experts.
  const auto element = static_cast<double>(trainer::ElementBytes(table.dtype()));
  const double fixed = element * static_cast<double>(table.TotalElements()) +
                       3 * element * static_cast<double>(table.SharedElements());
  std::vector<trainer::NodeCapacity> capacities;
  for (const NodeGroup& group : scenario.nodes.groups) {
    const trainer::NodeCapacity capacity{static_cast<double>(group.memory_bytes) - fixed,
                                         group.link.up_bps};
    capacities.insert(capacities.end(), static_cast<std::size_t>(group.count), capacity);
  }
  if (capacities.empty()) {
    capacities.assign(static_cast<std::size_t>(scenario.nodes.count),
                      {-fixed, LinkSection{}.up_bps});
  }
  return capacities;
}

trainer::Allocation BuildAllocation(const Scenario& scenario, const trainer::BlockTable& table) {
  return trainer::MakeAllocation(BuildAllocationConfig(scenario), table, NodeCount(scenario),
                                 BuildCapacities(scenario, table));
}

trainer::OptimizerConfig BuildOptimizer(const Scenario& scenario) {
  trainer::OptimizerConfig optimizer = scenario.training.optimizer;
  if (optimizer.decay_steps == 0) optimizer.decay_steps = scenario.training.steps;
  return optimizer;
}

trainer::CoordinatorConfig BuildCoordinatorConfig(const Scenario& scenario,
                                                  const trainer::BlockTable& table) {
  const SyncSection& sync = scenario.sync;
  trainer::CoordinatorConfig config;
  config.schedule = BuildSchedule(scenario);
  config.allocation = BuildAllocationConfig(scenario);
  config.capacities = BuildCapacities(scenario, table);
  config.reduction = {sync.shared.rule, sync.experts.rule};
  config.moments = sync.moments;
  config.update.outer_shared = sync.shared.outer;
  config.update.outer_experts = sync.experts.outer;
  config.update.merge = sync.merge;
  config.update.codec = sync.down;
  if (sync.method == SyncMethod::kDataParallel) config.update.gradients = BuildOptimizer(scenario);
  config.quorum = sync.quorum;
  config.deadline = sync.deadline;
  config.patience = sync.patience;
  config.tokens_per_step = scenario.training.sequences * scenario.training.context;
  config.orphans = sync.orphans;
  config.offered = sync.up;
  config.late = sync.late;
  config.staleness_power = sync.staleness_power;
  config.coding_time = CodingTime(scenario);
  config.trust = BuildTrust(scenario);
  return config;
}

trainer::PeerConfig BuildPeerConfig(const Scenario& scenario, int node) {
  const SyncSection& sync = scenario.sync;
  trainer::PeerConfig config;
  config.node = node;
  config.codec = sync.up;
  config.published = sync.down;
  config.gradients = sync.method == SyncMethod::kDataParallel;
  config.coding_time = CodingTime(scenario);
  config.moments = sync.moments;
  config.keep_moments = sync.rotate.moments == trainer::RotatedMoments::kKept;
  config.overlaps = sync.schedule.overlap > 0;
  config.keep = sync.keep_own;
  config.poison = BuildPoison(scenario, node);
  return config;
}

}  // namespace spes::scenarios
