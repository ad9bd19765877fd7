#include "trainer/protocol/exchange_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "trainer/protocol/wire_size.h"

namespace spes::trainer {

namespace {

std::int64_t CodedBytes(const CodecConfig& codec, const BlockTable& table, BlockId id) {
  if (IsPlain(codec)) return table.Bytes(id);
  return std::min(table.Bytes(id), LargestCode(codec, table.dtype(), table[id]));
}

}  // namespace

std::vector<sim::Payload> PayloadsOf(const BlockTable& table, const Allocation& allocation,
                                     const std::vector<bool>& due, const PayloadCoding& coding) {
  std::map<std::vector<int>, sim::Payload> by_trainers;
  for (BlockId id = 0; id < table.size(); ++id) {
    if (!due.empty() && !due[static_cast<std::size_t>(id)]) continue;
    sim::Payload& payload = by_trainers[allocation.trainers(id)];
    payload.trainers = allocation.trainers(id);
    const std::int64_t beside =
        kBlockHeaderBytes + (coding.moments ? 8 + 2 * table.Bytes(id) : std::int64_t{0});
    payload.up_bytes += CodedBytes(coding.up, table, id) + beside;
    payload.down_bytes += CodedBytes(coding.down, table, id) + beside;
  }
  std::vector<sim::Payload> payloads;
  for (auto& [trainers, payload] : by_trainers) payloads.push_back(std::move(payload));
  return payloads;
}

ExchangeSchedule::ExchangeSchedule(const BlockTable& table, const Allocation& allocation,
                                   const ExchangeConfig& config)
    : config_(config),
      rounds_(config.schedule, table),
      nodes_(allocation.nodes()),
      hosts_(allocation.nodes()) {
  sim::Exchange exchange;
  exchange.nodes = nodes_;
  exchange.sites = config.sites;
  for (const int host : config.coordinators) {
    hosts_ = std::max(hosts_, host + 1);
    const bool all = config.pattern == sim::ExchangePattern::kCoordinators;
    if (all || exchange.coordinators.empty()) exchange.coordinators.push_back(host);
  }
  // What is not published as its owner sent it has to go back to the owner too.
  const bool lossless = IsLossless(config.coding.down);
  std::map<std::pair<int, bool>, int> kinds;  // what is due, whether the owner receives
  for (std::int32_t r = 1; r <= rounds_.rounds(); ++r) {
    const RoundPlan& round = rounds_.round(r);
    const bool merges =
        MergeAlphaOfRound(config.merge, round.first_step - 1, round.last_step()) > 0;
    const bool owner_receives = merges || !lossless || config.steps_experts;
    const auto [found, fresh] =
        kinds.try_emplace({round.due, owner_receives}, static_cast<int>(kinds_.size()));
    if (fresh) {
      exchange.owner_receives = owner_receives;
      exchange.payloads = PayloadsOf(table, allocation, rounds_.due(round.due), config.coding);
      Kind made{sim::MakePlan(config.pattern, exchange), {}};
      made.bytes = sim::BytesOfHosts(made.plan, hosts_);
      kinds_.push_back(std::move(made));
    }
    kind_.push_back(found->second);
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

std::int64_t ExchangeSchedule::Charge(NodeId node, const Message& message,
                                      const BlockTable& table) const {
  if (std::holds_alternative<Offer>(message)) return BytesOf(node, RoundOf(message)).up;
  if (std::holds_alternative<Update>(message)) return BytesOf(node, RoundOf(message)).down;
  return WireBytes(message, table);
}

}  // namespace spes::trainer
