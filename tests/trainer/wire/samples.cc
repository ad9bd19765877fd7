#include "tests/trainer/wire/samples.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace spes::trainer {

namespace {

template <class T>
void Fill(const BlockSpec& block, double start, Buffer& buffer) {
  using Limits = std::numeric_limits<T>;
  using Word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  const T special[] = {std::bit_cast<T>(std::bit_cast<Word>(Limits::quiet_NaN()) | 0x1234),
                       Limits::infinity(), -Limits::infinity(), -T{0}, Limits::denorm_min()};
  std::size_t n = 0;
  for (const BlockPart& part : block.parts) {
    for (std::int64_t i = 0; i < part.elements; ++i, ++n) {
      buffer.as<T>()[static_cast<std::size_t>(part.offset + i)] =
          n < std::size(special) ? special[n] : static_cast<T>(start + static_cast<double>(n));
    }
  }
}

SharedBuffer Values(const BlockTable& table, BlockId id, double start) {
  const auto buffer = std::make_shared<Buffer>(table.Allocate(id));
  if (table.dtype() == DType::kFloat32) {
    Fill<float>(table[id], start, *buffer);
  } else {
    Fill<double>(table[id], start, *buffer);
  }
  return buffer;
}

SharedMoments Moments(const BlockTable& table, BlockId id, std::int64_t updates) {
  return std::make_shared<BlockMoments>(
      BlockMoments{Values(table, id, 100), Values(table, id, 200), updates});
}

SharedCode Code(std::string text) { return MakeCode(std::move(text)); }

analysis::StepRecord Step(std::int64_t step) {
  analysis::StepRecord record;
  record.step = step;
  record.virtual_s = 1.5;
  record.wall_s = 0.25;
  record.tokens = 4096;
  record.ce = 2.5;
  record.z = std::numeric_limits<double>::quiet_NaN();
  record.lb = std::numeric_limits<double>::infinity();
  record.rz = -0.0;
  record.grad_norm = 1e-320;
  record.lr = 3e-4;
  return record;
}

bool SameBits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

bool Same(const SharedBuffer& a, const SharedBuffer& b) {
  if (!a || !b) return !a && !b;
  return a->bytes() == b->bytes() &&
         std::memcmp(a->data(), b->data(), static_cast<std::size_t>(a->bytes())) == 0;
}

bool Same(const SharedMoments& a, const SharedMoments& b) {
  if (!a || !b) return !a && !b;
  return a->updates == b->updates && Same(a->first, b->first) && Same(a->second, b->second);
}

template <class Block>
bool Same(const std::vector<Block>& sent, const std::vector<Block>& received) {
  return std::equal(sent.begin(), sent.end(), received.begin(), received.end(),
                    [](const Block& a, const Block& b) {
                      if constexpr (requires { a.checksum; }) {
                        if (a.checksum != b.checksum) return false;
                      } else {
                        if (a.version != b.version) return false;
                      }
                      const bool content = a.code ? b.code && *a.code == *b.code && !b.data
                                                  : !b.code && Same(a.data, b.data);
                      return a.id == b.id && content && Same(a.moments, b.moments);
                    });
}

bool Same(const RoundSpan& a, const RoundSpan& b) {
  return a.round == b.round && a.first_step == b.first_step && a.steps == b.steps;
}

bool Same(const RoundOrder& a, const RoundOrder& b) {
  return Same(a.span, b.span) && a.ahead == b.ahead && a.moments == b.moments &&
         a.blocks == b.blocks && a.trains == b.trains;
}

bool Same(const analysis::StepRecord& a, const analysis::StepRecord& b) {
  return a.step == b.step && a.tokens == b.tokens && SameBits(a.virtual_s, b.virtual_s) &&
         SameBits(a.wall_s, b.wall_s) && SameBits(a.ce, b.ce) && SameBits(a.z, b.z) &&
         SameBits(a.lb, b.lb) && SameBits(a.rz, b.rz) && SameBits(a.grad_norm, b.grad_norm) &&
         SameBits(a.lr, b.lr);
}

struct Compare {
  bool operator()(const Join& a, const Join& b) const {
    return a.scenario_hash == b.scenario_hash && a.world_hash == b.world_hash &&
           a.incarnation == b.incarnation && a.run == b.run && a.round == b.round &&
           a.held == b.held && a.trains == b.trains;
  }
  bool operator()(const Admit& a, const Admit& b) const {
    return Same(a.blocks, b.blocks) && Same(a.order, b.order) && a.run == b.run &&
           a.reset_optimizer == b.reset_optimizer && a.steps_done == b.steps_done &&
           a.incarnation == b.incarnation && a.counted == b.counted;
  }
  bool operator()(const Offer& a, const Offer& b) const {
    return Same(a.span, b.span) && a.tokens == b.tokens && SameBits(a.start_s, b.start_s) &&
           SameBits(a.compute_s, b.compute_s) && a.routing.tokens == b.routing.tokens &&
           a.routing.routed == b.routing.routed &&
           std::ranges::equal(a.routing.entropy_sum, b.routing.entropy_sum, SameBits) &&
           std::ranges::equal(a.steps, b.steps,
                              [](const auto& x, const auto& y) { return Same(x, y); }) &&
           Same(a.blocks, b.blocks);
  }
  bool operator()(const Reject& a, const Reject& b) const {
    return a.reason == b.reason && a.round == b.round && a.detail == b.detail;
  }
  bool operator()(const Update& a, const Update& b) const {
    return a.version == b.version && SameBits(a.waited_s, b.waited_s) &&
           a.reset_optimizer == b.reset_optimizer && a.counted == b.counted &&
           Same(a.blocks, b.blocks) && a.next.has_value() == b.next.has_value() &&
           (!a.next || Same(*a.next, *b.next));
  }
  bool operator()(const Applied& a, const Applied& b) const {
    return a.version == b.version && SameBits(a.up_s, b.up_s) && SameBits(a.down_s, b.down_s);
  }
  bool operator()(const Leave& a, const Leave& b) const { return a.reason == b.reason; }
  template <class A, class B>
  bool operator()(const A&, const B&) const {
    return false;
  }
};

}  // namespace

std::shared_ptr<const BlockTable> SampleTable(DType dtype) {
  const std::vector<std::vector<std::int64_t>> shared = {{5}, {1}};
  std::vector<BlockSpec> blocks;
  for (int l = 0; l < 2; ++l) {
    const std::string layer = "layers." + std::to_string(l) + ".";
    blocks.push_back(MakeBlock(dtype, BlockKind::kShared, l, -1,
                               {{layer + "q", shared[static_cast<std::size_t>(l)]}}));
    for (int e = 0; e < 2; ++e) {
      const std::string name = layer + "experts." + std::to_string(e) + ".";
      const std::int64_t rows = l == 0 && e == 1 ? 8 : 3;  // 8 × 2: no padding between
      blocks.push_back(MakeBlock(
          dtype, BlockKind::kExpert, l, e,
          {{name + "w1", {rows, 2}}, {name + "v1", {rows, 2}}, {name + "w2", {2, rows}}}));
    }
  }
  blocks.push_back(MakeBlock(dtype, BlockKind::kShared, -1, -1, {{"empty", {0}}}));
  return std::make_shared<BlockTable>(dtype, std::move(blocks));
}

std::vector<Sample> SampleMessages(DType dtype) {
  const auto table = SampleTable(dtype);
  const auto values = [&](BlockId id) { return Values(*table, id, 10 * id); };
  RoundOrder order{{7, 61, 10}};
  RoundOrder full{
      {7, 61, 10}, 5, MomentsSent::kAll, std::vector<BlockId>{0, 2, 5}, std::vector<BlockId>{5, 1}};
  RoundOrder none{
      {1, 1, 2}, 0, MomentsSent::kExperts, std::vector<BlockId>{}, std::vector<BlockId>{}};

  std::vector<SentBlock> sent = {
      {2, 6, values(2)},
      {0, 0, values(0), nullptr, Moments(*table, 0, 77)},
      {6, 3, values(6), nullptr, Moments(*table, 6, 0)},
      {1, 2, values(1), Code(std::string("\0code\xff", 6))},
      {5, 2, nullptr, Code("another"), Moments(*table, 5, 1)},
      {3, 1, values(3), Code("")},
  };
  Offer offer{{7, 61, 10}, 40960, 1e9, 12.5, {Step(61), Step(62)}, {}, {}};
  offer.routing = {99, {{1, 2}, {3, 4}}, {0.5, -std::numeric_limits<double>::infinity()}};
  Offer with_blocks = offer;
  for (const SentBlock& block : sent) {
    with_blocks.blocks.push_back({block.id, 0x0123456789abcdefu + static_cast<unsigned>(block.id),
                                  block.data, block.code, block.moments});
  }
  Offer uneven = offer;
  uneven.steps.clear();
  uneven.routing = {0, {{}, {1}}, {}};

  return {
      {"join, all of it", Join{"abc",
                               "wörld – ✓",
                               ~0ull,
                               1ull << 63,
                               12,
                               {-1, 0, 1, 2, 3, std::numeric_limits<Version>::max(), -1},
                               {6, 0}}},
      {"join, nothing", Join{}},
      {"admit", Admit{sent, full, 42, true, std::numeric_limits<std::int64_t>::max(), 7}},
      {"admit without blocks", Admit{{}, order, 0, false, 0, 0, true}},
      {"admit, empty lists", Admit{{sent[0]}, none, 1}},
      {"offer", with_blocks},
      {"offer without blocks", offer},
      {"offer of uneven routing", uneven},
      {"reject", Reject{RejectReason::kNotMember, 3, "why not"}},
      {"reject, first reason", Reject{RejectReason::kScenario, 0, ""}},
      {"update", Update{8, 0.125, true, sent, full, true}},
      {"update, the last", Update{std::numeric_limits<Version>::max(),
                                  std::numeric_limits<double>::quiet_NaN(),
                                  false,
                                  {},
                                  {}}},
      {"applied", Applied{8, std::numeric_limits<double>::infinity(), -0.0}},
      {"leave", Leave{"the machine is needed"}},
      {"leave, no reason", Leave{}},
  };
}

std::string PayloadOf(const OutgoingMessage& message) {
  std::string bytes;
  for (const auto piece : message.payload) {
    bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  }
  return bytes;
}

Message Receive(IncomingMessage incoming, std::string_view payload) {
  if (static_cast<std::int64_t>(payload.size()) != incoming.payload_bytes()) {
    throw std::logic_error("payload of another length");
  }
  for (const auto piece : incoming.payload()) {
    if (piece.size() > payload.size()) throw std::logic_error("there is too much room");
    std::memcpy(piece.data(), payload.substr(0, piece.size()).data(), piece.size());
    payload.remove_prefix(piece.size());
  }
  if (!payload.empty()) throw std::logic_error("there is no room for all of the payload");
  return std::move(incoming).Finish();
}

Message RoundTrip(const OutgoingMessage& message, const std::shared_ptr<const BlockTable>& table) {
  return Receive(IncomingMessage(message.head, table, {}), PayloadOf(message));
}

bool Same(const Message& sent, const Message& received) {
  return std::visit(Compare{}, sent, received);
}

}  // namespace spes::trainer
