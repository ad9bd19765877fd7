#include "sim/traffic/patterns.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "sim/traffic/pattern_plans.h"

namespace spes::sim {

namespace {

template <typename... Args>
[[noreturn]] void Refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw std::invalid_argument("exchange: " + fmt::format(format, std::forward<Args>(args)...));
}

void CheckPayloads(const Exchange& exchange) {
  for (std::size_t i = 0; i < exchange.payloads.size(); ++i) {
    const Payload& payload = exchange.payloads[i];
    if (payload.trainers.empty()) Refuse("payload {} is trained by no node", i);
    std::set<int> seen;
    for (const int node : payload.trainers) {
      if (node < 0 || node >= exchange.nodes) {
        Refuse("payload {} is trained by node {}: there are {}, counted from 0", i, node,
               exchange.nodes);
      }
      if (!seen.insert(node).second) Refuse("payload {} names node {} twice", i, node);
    }
    if (payload.up_bytes < 0 || payload.down_bytes < 0) {
      Refuse("payload {} has {} bytes up and {} down: at least 0", i, payload.up_bytes,
             payload.down_bytes);
    }
  }
}

void Check(ExchangePattern pattern, const Exchange& exchange) {
  if (exchange.nodes < 1) Refuse("{} nodes: at least 1", exchange.nodes);
  CheckPayloads(exchange);
  const std::size_t coordinators = exchange.coordinators.size();
  const bool one = pattern == ExchangePattern::kCoordinator || pattern == ExchangePattern::kTree;
  if (one && coordinators != 1) {
    Refuse("the pattern {} has {} coordinators: it needs 1", Name(pattern), coordinators);
  }
  if (pattern == ExchangePattern::kCoordinators && coordinators == 0) {
    Refuse("the pattern coordinators has none: it needs at least 1");
  }
  std::set<int> seen;
  for (const int host : exchange.coordinators) {
    if (host < 0) Refuse("coordinator at host {}: hosts are counted from 0", host);
    if (!seen.insert(host).second) Refuse("host {} is a coordinator twice", host);
  }
  if (pattern == ExchangePattern::kTree && std::ssize(exchange.sites) != exchange.nodes) {
    Refuse("the sites of {} nodes are given: there are {} nodes", exchange.sites.size(),
           exchange.nodes);
  }
}

}  // namespace

std::string_view Name(ExchangePattern pattern) {
  switch (pattern) {
    case ExchangePattern::kCoordinator:
      return "coordinator";
    case ExchangePattern::kCoordinators:
      return "coordinators";
    case ExchangePattern::kRing:
      return "ring";
    case ExchangePattern::kDirect:
      return "direct";
    case ExchangePattern::kTree:
      return "tree";
  }
  throw std::logic_error("an unknown exchange pattern");
}

TrafficPlan MakePlan(ExchangePattern pattern, const Exchange& exchange) {
  Check(pattern, exchange);
  switch (pattern) {
    case ExchangePattern::kCoordinator:
    case ExchangePattern::kCoordinators:
      return CoordinatorsPlan(exchange);
    case ExchangePattern::kRing:
      return RingPlan(exchange);
    case ExchangePattern::kDirect:
      return DirectPlan(exchange);
    case ExchangePattern::kTree:
      return TreePlan(exchange);
  }
  throw std::logic_error("an unknown exchange pattern");
}

}  // namespace spes::sim
