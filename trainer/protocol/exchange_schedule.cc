#include "trainer/protocol/exchange_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "trainer/protocol/wire_size.h"

namespace spes::trainer {

std::vector<sim::Payload> PayloadsOf(const BlockTable& table, const Allocation& allocation) {
  std::map<std::vector<int>, std::int64_t> bytes;  // by trainers
  for (BlockId id = 0; id < table.size(); ++id) {
    bytes[allocation.trainers(id)] += table.Bytes(id) + kBlockHeaderBytes;
  }
  std::vector<sim::Payload> payloads;
  for (const auto& [trainers, sum] : bytes) payloads.push_back({trainers, sum, sum});
  return payloads;
}

ExchangeSchedule::ExchangeSchedule(const BlockTable& table, const Allocation& allocation,
                                   const ExchangeConfig& config)
    : config_(config), nodes_(allocation.nodes()), hosts_(allocation.nodes()) {
  sim::Exchange exchange;
  exchange.nodes = nodes_;
  exchange.payloads = PayloadsOf(table, allocation);
  exchange.sites = config.sites;
  for (const int host : config.coordinators) {
    hosts_ = std::max(hosts_, host + 1);
    const bool all = config.pattern == sim::ExchangePattern::kCoordinators;
    if (all || exchange.coordinators.empty()) exchange.coordinators.push_back(host);
  }
  const bool merges = config.merge.interval > 0;
  for (int kind = 0; kind < (merges ? 2 : 1); ++kind) {
    exchange.owner_receives = kind == 1;
    Kind made{sim::MakePlan(config.pattern, exchange), {}};
    made.bytes = sim::BytesOfHosts(made.plan, hosts_);
    kinds_.push_back(std::move(made));
  }
}

std::int32_t ExchangeSchedule::IdOf(int host) const {
  const auto found = std::find(config_.coordinators.begin(), config_.coordinators.end(), host);
  if (found == config_.coordinators.end()) return host;
  return kCoordinator - static_cast<std::int32_t>(found - config_.coordinators.begin());
}

std::string ExchangeSchedule::NameOf(int host) const {
  const std::int32_t id = IdOf(host);
  if (id == kCoordinator) return "the coordinator";
  return id >= 0 ? fmt::format("node {}", id) : fmt::format("coordinator {}", -id);
}

std::string ExchangeSchedule::FailureText(std::int32_t round, const sim::FlowResult& result) const {
  return fmt::format(
      "round {}: the exchange by {} cannot go on: the transfer from {} to {} {} after {} of {} "
      "bytes",
      round, name(), NameOf(result.flow.from), NameOf(result.flow.to), sim::Name(result.outcome),
      result.delivered_bytes, result.flow.bytes);
}

int ExchangeSchedule::KindOf(std::int32_t round) const {
  const std::int64_t before = (round - 1) * config_.every;
  const std::int64_t last = std::min(before + config_.every, config_.total_steps);
  return MergeAlphaOfRound(config_.merge, before, last) > 0 ? 1 : 0;
}

std::int64_t ExchangeSchedule::Charge(NodeId node, const Message& message,
                                      const BlockTable& table) const {
  if (std::holds_alternative<Offer>(message)) return BytesOf(node, RoundOf(message)).up;
  if (std::holds_alternative<Update>(message)) return BytesOf(node, RoundOf(message)).down;
  return WireBytes(message, table);
}

}  // namespace spes::trainer
