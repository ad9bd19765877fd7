#include "trainer/protocol/offer_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace spes::trainer {

std::optional<OfferFault> DecodeOffer(const CodecConfig& codec, const std::vector<BlockId>& asked,
                                      const std::vector<SharedBuffer>& base,
                                      const BlockTable& table, Offer& offer) {
  for (OfferedBlock& block : offer.blocks) {
    if (block.data || !block.code) continue;
    const auto found = std::lower_bound(asked.begin(), asked.end(), block.id);
    if (found == asked.end() || *found != block.id) break;  // CheckOffer says what is wrong
    const auto k = static_cast<std::size_t>(found - asked.begin());
    try {
      block.data = Decode(codec, table.dtype(), table[block.id], *block.code,
                          base.empty() ? nullptr : base[k].get());
    } catch (const std::invalid_argument& error) {
      return OfferFault{RejectReason::kUnexpected, error.what()};
    }
  }
  return std::nullopt;
}

std::optional<OfferFault> CheckOffer(const Offer& offer, const RoundSpan& span,
                                     const std::vector<BlockId>& asked, const BlockTable& table) {
  const auto unexpected = [](std::string what) {
    return OfferFault{RejectReason::kUnexpected, std::move(what)};
  };
  if (!std::equal(asked.begin(), asked.end(), offer.blocks.begin(), offer.blocks.end(),
                  [](BlockId id, const OfferedBlock& block) { return id == block.id; })) {
    return unexpected("its blocks are not the ones that were asked for");
  }
  if (offer.span.round == span.round &&
      (offer.span.steps != span.steps || offer.span.first_step != span.first_step)) {
    return unexpected(fmt::format("{} steps from {} instead of {} from {}", offer.span.steps,
                                  offer.span.first_step, span.steps, span.first_step));
  }
  if (offer.tokens <= 0 || offer.routing.entropy_sum.size() != offer.routing.routed.size()) {
    return unexpected("its counts of tokens do not fit together");
  }
  for (const OfferedBlock& block : offer.blocks) {
    const BlockSpec& spec = table[block.id];
    const std::string& name = spec.parts.front().name;
    if (!block.data || block.data->bytes() != spec.buffer_elements * ElementBytes(table.dtype())) {
      return unexpected(fmt::format("the size of {} is wrong", name));
    }
    if (BlockChecksum(spec, table.dtype(), *block.data) != block.checksum) {
      return OfferFault{RejectReason::kCorrupt,
                        fmt::format("the checksum of {} does not match", name)};
    }
    if (!AllFinite(table.dtype(), *block.data)) {
      return OfferFault{RejectReason::kNotFinite, fmt::format("{} is not finite", name)};
    }
    if (!block.moments) continue;
    for (const SharedBuffer& moment : {block.moments->first, block.moments->second}) {
      if (!moment || moment->bytes() != block.data->bytes()) {
        return unexpected(fmt::format("the size of the moments of {} is wrong", name));
      }
      if (!AllFinite(table.dtype(), *moment)) {
        return OfferFault{RejectReason::kNotFinite,
                          fmt::format("the moments of {} are not finite", name)};
      }
    }
  }
  return std::nullopt;
}

}  // namespace spes::trainer
