#include "trainer/protocol/wire_size.h"

#include <type_traits>

namespace spes::trainer {

namespace {

constexpr std::int64_t kKind = 1;
constexpr std::int64_t kCount = 4;         // of a list or a text
constexpr std::int64_t kSpan = 4 + 8 + 4;  // RoundSpan
constexpr std::int64_t kStep = 80;         // StepRecord without node and round

std::int64_t Text(const std::string& s) { return kCount + static_cast<std::int64_t>(s.size()); }

std::int64_t Routing(const RoutingCounts& r) {
  std::int64_t bytes = 8 + kCount + kCount;
  for (const auto& layer : r.routed) bytes += kCount + 8 * static_cast<std::int64_t>(layer.size());
  return bytes + 8 * static_cast<std::int64_t>(r.entropy_sum.size());
}

std::int64_t Ids(const std::vector<BlockId>& ids) {
  return kCount + 4 * static_cast<std::int64_t>(ids.size());
}

// The span, steps ahead, flags, and the lists.
std::int64_t Order(const RoundOrder& order) {
  return kSpan + 4 + 1 + (order.blocks ? Ids(*order.blocks) : 0) +
         (order.trains ? Ids(*order.trains) : 0);
}

template <class Block>
std::int64_t Headers(const std::vector<Block>& blocks) {
  return kCount + kBlockHeaderBytes * static_cast<std::int64_t>(blocks.size());
}

struct Fields {
  std::int64_t operator()(const Join& m) const {
    return Text(m.scenario_hash) + Text(m.world_hash) + 8 + 8 + 4 + Ids(m.held) + Ids(m.trains);
  }
  std::int64_t operator()(const Admit& m) const {
    return Headers(m.blocks) + Order(m.order) + 8 + 1 + 8 + 8;
  }
  std::int64_t operator()(const Offer& m) const {
    return kSpan + 24 + kCount + kStep * static_cast<std::int64_t>(m.steps.size()) +
           Routing(m.routing) + Headers(m.blocks);
  }
  std::int64_t operator()(const Reject& m) const { return 1 + 4 + Text(m.detail); }
  std::int64_t operator()(const Update& m) const {
    return 4 + 8 + 1 + Headers(m.blocks) + 1 + (m.next ? Order(*m.next) : 0);
  }
  std::int64_t operator()(const Applied&) const { return 4 + 2 * 8; }
  std::int64_t operator()(const Leave& m) const { return Text(m.reason); }
};

template <class Block>
void AddPayload(const std::vector<Block>& blocks, const BlockTable& table, WireParts& parts) {
  for (const Block& block : blocks) {
    const std::int64_t values = table.Bytes(block.id);
    (table[block.id].kind == BlockKind::kExpert ? parts.experts : parts.shared) +=
        block.code ? static_cast<std::int64_t>(block.code->size()) : values;
    if (block.moments) parts.moments += 8 + 2 * values;
  }
}

}  // namespace

WireParts& WireParts::operator+=(const WireParts& other) {
  shared += other.shared;
  experts += other.experts;
  moments += other.moments;
  framing += other.framing;
  return *this;
}

WireParts WireParts::operator-(const WireParts& other) const {
  return {shared - other.shared, experts - other.experts, moments - other.moments,
          framing - other.framing};
}

WireParts PartsOf(const Message& message, const BlockTable& table) {
  WireParts parts;
  parts.framing = kFrameBytes + kKind + std::visit(Fields{}, message);
  std::visit(
      [&](const auto& m) {
        if constexpr (requires { m.blocks; }) AddPayload(m.blocks, table, parts);
      },
      message);
  return parts;
}

}  // namespace spes::trainer
