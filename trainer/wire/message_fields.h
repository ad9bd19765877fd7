// What a head holds, in its order: written down once for both directions. `Io` is a HeadWriter,
// which appends the fields, or a HeadReader, which checks and sets them. Sizes: wire_size.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

#include "trainer/protocol/messages.h"
#include "trainer/protocol/wire_size.h"

namespace spes::trainer {

// The last word of a block's header: what there is, above the length of values or code.
inline constexpr std::uint64_t kHasCode = 1, kHasMoments = 2;
inline constexpr int kLengthBits = 56;

// Two of them in a byte.
template <class Io>
void Flags(Io& io, bool& low, bool& high) {
  auto flags = static_cast<std::uint8_t>((low ? 1 : 0) | (high ? 2 : 0));
  io.Number(flags);
  io.Require(flags < 4, "flags are unknown");
  low = (flags & 1) != 0;
  high = (flags & 2) != 0;
}

template <class Io>
void Fields(Io& io, RoundSpan& span) {
  io.Count(span.round);
  io.Count(span.first_step);
  io.Count(span.steps);
}

template <class Io>
void Fields(Io& io, std::vector<BlockId>& ids) {
  io.List(ids, io.blocks(), sizeof(BlockId), [&](BlockId& id) { io.Id(id); });
}

template <class Io>
void Fields(Io& io, RoundOrder& order) {
  constexpr std::uint8_t kBlocks = 4, kTrains = 8;  // above two bits of moments
  Fields(io, order.span);
  io.Count(order.ahead);
  auto flags =
      static_cast<std::uint8_t>(static_cast<int>(order.moments) | (order.blocks ? kBlocks : 0) |
                                (order.trains ? kTrains : 0));
  io.Number(flags);
  const int moments = flags & 3;
  io.Require(flags < 16 && moments <= static_cast<int>(MomentsSent::kAll),
             "an order's flags are unknown");
  order.moments = static_cast<MomentsSent>(moments);
  if (flags & kBlocks) Fields(io, order.blocks ? *order.blocks : order.blocks.emplace());
  if (flags & kTrains) Fields(io, order.trains ? *order.trains : order.trains.emplace());
}

template <class Io, class Block>
void Fields(Io& io, std::vector<Block>& blocks) {
  io.List(blocks, io.blocks(), kBlockHeaderBytes, [&](Block& block) {
    std::int32_t version = 0;
    std::uint64_t checksum = 0;
    io.Id(block.id);
    if constexpr (std::is_same_v<Block, SentBlock>) {
      io.Count(block.version);
      io.Number(checksum);
      io.Require(checksum == 0, "a checksum where none belongs");
    } else {
      io.Number(version);
      io.Require(version == 0, "a version where none belongs");
      io.Number(block.checksum);
    }
    io.Content(block);
  });
}

template <class Io>
void Fields(Io& io, std::vector<analysis::StepRecord>& steps) {
  io.List(steps, io.any_length(), 80, [&](analysis::StepRecord& step) {
    io.Count(step.step);
    io.Number(step.virtual_s);
    io.Number(step.wall_s);
    io.Count(step.tokens);
    for (double* value : {&step.ce, &step.z, &step.lb, &step.rz, &step.grad_norm, &step.lr}) {
      io.Number(*value);
    }
  });
}

template <class Io>
void Fields(Io& io, RoutingCounts& routing) {
  io.Count(routing.tokens);
  io.List(routing.routed, io.layers(), 4, [&](std::vector<std::int64_t>& experts) {
    io.List(experts, io.experts(), 8, [&](std::int64_t& slots) { io.Count(slots); });
  });
  io.List(routing.entropy_sum, io.layers(), 8, [&](double& sum) { io.Number(sum); });
}

template <class Io>
void Fields(Io& io, Join& m) {
  io.Text(m.scenario_hash);
  io.Text(m.world_hash);
  io.Number(m.incarnation);
  io.Number(m.run);
  io.Count(m.round);
  io.List(m.held, io.blocks(), sizeof(Version), [&](Version& version) {
    io.Number(version);
    io.Require(version >= -1, "a version below -1");
  });
  io.Require(m.held.empty() || m.held.size() == io.blocks(),
             "versions of more or fewer blocks than there are");
  Fields(io, m.trains);
}

template <class Io>
void Fields(Io& io, Admit& m) {
  Fields(io, m.blocks);
  Fields(io, m.order);
  io.Number(m.run);
  Flags(io, m.reset_optimizer, m.counted);
  io.Count(m.steps_done);
  io.Number(m.incarnation);
}

template <class Io>
void Fields(Io& io, Offer& m) {
  Fields(io, m.span);
  io.Count(m.tokens);
  io.Number(m.start_s);
  io.Number(m.compute_s);
  Fields(io, m.steps);
  Fields(io, m.routing);
  Fields(io, m.blocks);
}

template <class Io>
void Fields(Io& io, Reject& m) {
  auto reason = static_cast<std::uint8_t>(m.reason);
  io.Number(reason);
  m.reason = static_cast<RejectReason>(reason);
  // Only reasons that there are have names of their own.
  io.Require(
      m.reason == RejectReason::kUnexpected || Name(m.reason) != Name(RejectReason::kUnexpected),
      "the reason is unknown");
  io.Count(m.round);
  io.Text(m.detail);
}

template <class Io>
void Fields(Io& io, Update& m) {
  io.Count(m.version);
  io.Number(m.waited_s);
  Flags(io, m.reset_optimizer, m.counted);
  Fields(io, m.blocks);
  bool next = m.next.has_value();
  io.Flag(next);
  if (next) Fields(io, m.next ? *m.next : m.next.emplace());
}

template <class Io>
void Fields(Io& io, Applied& m) {
  io.Count(m.version);
  io.Number(m.up_s);
  io.Number(m.down_s);
}

template <class Io>
void Fields(Io& io, Leave& m) {
  io.Text(m.reason);
}

}  // namespace spes::trainer
