// The patterns without a coordinator: chunks are reduced by the trainers themselves.
#include <algorithm>

#include "sim/traffic/pattern_plans.h"

namespace spes::sim {

namespace {

std::vector<int> Ordered(const std::vector<int>& trainers) {
  std::vector<int> ordered = trainers;
  std::sort(ordered.begin(), ordered.end());
  return ordered;
}

}  // namespace

TrafficPlan RingPlan(const Exchange& exchange) {
  const int nodes = exchange.nodes;
  PlanBuilder plan;
  // What each node puts into the all-gather, and what it waits for before: [node].
  std::vector<std::int64_t> gathered(static_cast<std::size_t>(nodes));
  std::vector<std::vector<int>> reduced(static_cast<std::size_t>(nodes));

  for (const Payload& payload : exchange.payloads) {
    const std::vector<int> ring = Ordered(payload.trainers);
    const int size = static_cast<int>(ring.size());
    const auto at = [&ring, size](int i) {
      return ring[static_cast<std::size_t>((i % size + size) % size)];
    };
    std::vector<int> arrived(ring.size(), PlanBuilder::kNothing);  // [place in the ring]
    for (int step = 0; step + 1 < size; ++step) {
      std::vector<int> next(ring.size());
      for (int i = 0; i < size; ++i) {
        const int chunk = ((i - step) % size + size) % size;
        next[static_cast<std::size_t>((i + 1) % size)] =
            plan.Send(at(i), at(i + 1), PartOf(payload.up_bytes, size, chunk),
                      {arrived[static_cast<std::size_t>(i)]});
      }
      arrived = std::move(next);
    }
    for (int i = 0; i < size; ++i) {
      const auto node = static_cast<std::size_t>(at(i));
      gathered[node] += PartOf(payload.down_bytes, size, (i + 1) % size);
      reduced[node].push_back(arrived[static_cast<std::size_t>(i)]);
    }
  }

  std::vector<std::vector<int>> brought = std::move(reduced);
  for (int step = 0; step + 1 < nodes; ++step) {
    std::vector<std::vector<int>> next(static_cast<std::size_t>(nodes));
    for (int node = 0; node < nodes; ++node) {
      const auto origin = static_cast<std::size_t>((node - step + nodes) % nodes);
      const int to = (node + 1) % nodes;
      next[static_cast<std::size_t>(to)] = {plan.Send(
          node, to, gathered[origin], std::move(brought[static_cast<std::size_t>(node)]))};
    }
    brought = std::move(next);
  }
  return plan.Take();
}

TrafficPlan DirectPlan(const Exchange& exchange) {
  const int nodes = exchange.nodes;
  const auto count = static_cast<std::size_t>(nodes);
  // Per node: what it alone trains, what it reduces; and what it sends to each other to be reduced.
  std::vector<std::int64_t> owned(count), reduces(count), scattered(count * count);
  const auto scatter = [&scattered, count](int from, int to) -> std::int64_t& {
    return scattered[static_cast<std::size_t>(from) * count + static_cast<std::size_t>(to)];
  };
  for (const Payload& payload : exchange.payloads) {
    const std::vector<int> trainers = Ordered(payload.trainers);
    const int size = static_cast<int>(trainers.size());
    if (size == 1) {
      owned[static_cast<std::size_t>(trainers[0])] += payload.down_bytes;
      continue;
    }
    for (int chunk = 0; chunk < size; ++chunk) {
      const int reducer = trainers[static_cast<std::size_t>(chunk)];
      reduces[static_cast<std::size_t>(reducer)] += PartOf(payload.down_bytes, size, chunk);
      const std::int64_t bytes = PartOf(payload.up_bytes, size, chunk);
      for (const int from : trainers) {
        if (from != reducer) scatter(from, reducer) += bytes;
      }
    }
  }

  // In each step every node sends to another one, so that limited sends do not meet.
  const auto each = [nodes](const auto& f) {
    for (int step = 1; step < nodes; ++step) {
      for (int from = 0; from < nodes; ++from) f(from, (from + step) % nodes);
    }
  };
  PlanBuilder plan;
  std::vector<std::vector<int>> arrivals(count);
  each([&](int from, int to) {
    arrivals[static_cast<std::size_t>(to)].push_back(plan.Send(from, to, scatter(from, to)));
  });
  each([&](int from, int to) { plan.Send(from, to, owned[static_cast<std::size_t>(from)]); });
  std::vector<int> reduced;
  for (int node = 0; node < nodes; ++node) {
    reduced.push_back(plan.Joint(node, std::move(arrivals[static_cast<std::size_t>(node)])));
  }
  each([&](int from, int to) {
    plan.Send(from, to, reduces[static_cast<std::size_t>(from)],
              {reduced[static_cast<std::size_t>(from)]});
  });
  return plan.Take();
}

}  // namespace spes::sim
