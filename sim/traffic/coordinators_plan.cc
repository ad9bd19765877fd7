#include "sim/traffic/pattern_plans.h"

namespace spes::sim {

namespace {

// Bytes of one coordinator's parts: [node].
struct Parts {
  std::vector<std::int64_t> up, down;
};

Parts PartsOf(const Exchange& exchange, int coordinator) {
  const auto nodes = static_cast<std::size_t>(exchange.nodes);
  const int count = static_cast<int>(exchange.coordinators.size());
  Parts parts{std::vector<std::int64_t>(nodes), std::vector<std::int64_t>(nodes)};
  std::int64_t all = 0;
  for (const Payload& payload : exchange.payloads) {
    const std::int64_t up = PartOf(payload.up_bytes, count, coordinator);
    const std::int64_t down = PartOf(payload.down_bytes, count, coordinator);
    all += down;
    for (const int node : payload.trainers) parts.up[static_cast<std::size_t>(node)] += up;
    if (payload.trainers.size() == 1 && !exchange.owner_receives) {
      parts.down[static_cast<std::size_t>(payload.trainers[0])] -= down;
    }
  }
  for (std::int64_t& down : parts.down) down += all;
  return parts;
}

}  // namespace

TrafficPlan CoordinatorsPlan(const Exchange& exchange) {
  const int count = static_cast<int>(exchange.coordinators.size());
  std::vector<Parts> parts;
  for (int k = 0; k < count; ++k) parts.push_back(PartsOf(exchange, k));

  // Each node begins with another coordinator, so that limited sends do not meet at one of them.
  const auto each = [&](const auto& f) {
    for (int step = 0; step < count; ++step) {
      for (int node = 0; node < exchange.nodes; ++node) {
        const int k = (node + step) % count;
        f(node, k, exchange.coordinators[static_cast<std::size_t>(k)],
          parts[static_cast<std::size_t>(k)]);
      }
    }
  };
  PlanBuilder plan;
  std::vector<std::vector<int>> arrivals(parts.size());
  each([&](int node, int k, int host, const Parts& its) {
    arrivals[static_cast<std::size_t>(k)].push_back(
        plan.Send(node, host, its.up[static_cast<std::size_t>(node)]));
  });
  std::vector<int> reduced;
  for (int k = 0; k < count; ++k) {
    reduced.push_back(plan.Joint(exchange.coordinators[static_cast<std::size_t>(k)],
                                 std::move(arrivals[static_cast<std::size_t>(k)])));
  }
  each([&](int node, int k, int host, const Parts& its) {
    plan.Send(host, node, its.down[static_cast<std::size_t>(node)],
              {reduced[static_cast<std::size_t>(k)]});
  });
  return plan.Take();
}

}  // namespace spes::sim
