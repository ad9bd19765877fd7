#include "trainer/protocol/wire_size.h"

#include <type_traits>

namespace spes::trainer {

namespace {

constexpr std::int64_t kCount = 4;          // of a list or a text
constexpr std::int64_t kOrder = 4 + 8 + 4;  // RoundOrder
constexpr std::int64_t kStep = 80;          // StepRecord without node and round

std::int64_t Text(const std::string& s) { return kCount + static_cast<std::int64_t>(s.size()); }

std::int64_t Routing(const RoutingCounts& r) {
  std::int64_t bytes = 8 + kCount + kCount;
  for (const auto& layer : r.routed) bytes += kCount + 8 * static_cast<std::int64_t>(layer.size());
  return bytes + 8 * static_cast<std::int64_t>(r.entropy_sum.size());
}

template <class Block>
std::int64_t Payload(const std::vector<Block>& blocks, const BlockTable& table) {
  std::int64_t bytes = 0;
  for (const Block& block : blocks) bytes += table.Bytes(block.id);
  return bytes;
}

template <class Block>
std::int64_t Headers(const std::vector<Block>& blocks) {
  return kCount + kBlockHeaderBytes * static_cast<std::int64_t>(blocks.size());
}

struct Fields {
  std::int64_t operator()(const Join& m) const {
    return Text(m.scenario_hash) + Text(m.world_hash) + 8;
  }
  std::int64_t operator()(const Admit& m) const { return Headers(m.blocks) + kOrder; }
  std::int64_t operator()(const Offer& m) const {
    return kOrder + 24 + kCount + kStep * static_cast<std::int64_t>(m.steps.size()) +
           Routing(m.routing) + Headers(m.blocks);
  }
  std::int64_t operator()(const Reject& m) const { return 1 + 4 + Text(m.detail); }
  std::int64_t operator()(const Update& m) const {
    return 4 + 8 + 1 + Headers(m.blocks) + 1 + (m.next ? kOrder : 0);
  }
  std::int64_t operator()(const Applied&) const { return 4 + 2 * 8; }
  std::int64_t operator()(const Leave& m) const { return Text(m.reason); }
};

// The elements of all blocks in the message.
std::int64_t PayloadBytes(const Message& message, const BlockTable& table) {
  return std::visit(
      [&](const auto& m) -> std::int64_t {
        if constexpr (requires { m.blocks; }) return Payload(m.blocks, table);
        return 0;
      },
      message);
}

}  // namespace

std::int64_t WireBytes(const Message& message, const BlockTable& table) {
  return kFrameBytes + std::visit(Fields{}, message) + PayloadBytes(message, table);
}

}  // namespace spes::trainer
