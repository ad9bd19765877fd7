#include "trainer/protocol/offer_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace spes::trainer {

namespace {

OfferFault Unexpected(std::string what) {
  return OfferFault{RejectReason::kUnexpected, std::move(what)};
}

// A figure may be a NaN: there is none.
bool AllFinite(const analysis::StepRecord& s) {
  const auto figures = {s.ce, s.z, s.lb, s.rz, s.grad_norm, s.lr};
  return std::isfinite(s.virtual_s) && std::isfinite(s.wall_s) &&
         std::none_of(figures.begin(), figures.end(), [](double x) { return std::isinf(x); });
}

// The counts and figures of the ordered steps.
std::optional<OfferFault> CheckSteps(const Offer& offer, const RoundSpan& span,
                                     std::int64_t tokens_per_step) {
  const auto count_fits = [](std::int64_t count, std::int64_t most) {
    return count >= 0 && count <= most;
  };
  if (offer.tokens == 0 || !count_fits(offer.tokens, span.steps * tokens_per_step)) {
    return Unexpected(fmt::format("{} tokens in {} steps of at most {}", offer.tokens, span.steps,
                                  tokens_per_step));
  }
  if (offer.steps.size() != static_cast<std::size_t>(span.steps)) {
    return Unexpected(
        fmt::format("{} steps in its log instead of {}", offer.steps.size(), span.steps));
  }
  bool finite = std::isfinite(offer.start_s) && std::isfinite(offer.compute_s);
  for (std::size_t i = 0; i < offer.steps.size(); ++i) {
    const analysis::StepRecord& step = offer.steps[i];
    if (step.step != span.first_step + static_cast<std::int64_t>(i) ||
        !count_fits(step.tokens, tokens_per_step)) {
      return Unexpected(fmt::format("its step {} in the place of step {}, or its tokens", step.step,
                                    span.first_step + static_cast<std::int64_t>(i)));
    }
    finite = finite && AllFinite(step);
  }
  const RoutingCounts& routing = offer.routing;
  bool fits = routing.entropy_sum.size() == routing.routed.size() &&
              count_fits(routing.tokens, span.steps * tokens_per_step);
  for (const std::vector<std::int64_t>& layer : routing.routed) {
    // No token is routed twice to the same expert.
    for (const std::int64_t slots : layer) {
      fits = fits && count_fits(slots, span.steps * tokens_per_step);
    }
  }
  if (!fits) return Unexpected("its counts of routed tokens cannot be");
  for (const double sum : routing.entropy_sum) finite = finite && std::isfinite(sum);
  if (!finite) return OfferFault{RejectReason::kNotFinite, "a figure of its log is not finite"};
  return std::nullopt;
}

std::optional<OfferFault> CheckMoments(const OfferedBlock& block, const OrderedOffer& ordered,
                                       const BlockTable& table) {
  const BlockSpec& spec = table[block.id];
  const std::string& name = spec.parts.front().name;
  const bool wanted = ordered.moments == MomentsSent::kAll ||
                      (ordered.moments == MomentsSent::kExperts && spec.kind == BlockKind::kExpert);
  if ((block.moments != nullptr) != wanted) {
    return Unexpected(
        fmt::format("moments of {} {}", name, wanted ? "are missing" : "that were not asked for"));
  }
  if (!wanted) return std::nullopt;
  const BlockMoments& moments = *block.moments;
  for (const SharedBuffer& moment : {moments.first, moments.second}) {
    if (!moment || moment->bytes() != spec.buffer_elements * ElementBytes(table.dtype())) {
      return Unexpected(fmt::format("the size of the moments of {} is wrong", name));
    }
  }
  if (moments.updates < 0 || moments.updates > ordered.span.last_step()) {
    return Unexpected(fmt::format("the moments of {} count {} updates by step {}", name,
                                  moments.updates, ordered.span.last_step()));
  }
  const double largest = LargestOffered(table.dtype());
  if (!AllWithin(table.dtype(), *moments.first, -largest, largest) ||
      !AllWithin(table.dtype(), *moments.second, 0, largest)) {
    return OfferFault{RejectReason::kNotFinite,
                      fmt::format("the moments of {} are not finite, or below 0", name)};
  }
  return std::nullopt;
}

}  // namespace

double LargestOffered(DType dtype) { return dtype == DType::kFloat32 ? 1e18 : 1e140; }

bool IsOfModel(const Offer& offer, const BlockTable& table) {
  return std::all_of(offer.blocks.begin(), offer.blocks.end(), [&table](const OfferedBlock& block) {
    return block.id >= 0 && block.id < table.size();
  });
}

std::optional<OfferFault> DecodeOffer(const CodecConfig& codec, const OrderedOffer& ordered,
                                      const BlockTable& table, Offer& offer,
                                      const Allocate& allocate) {
  for (OfferedBlock& block : offer.blocks) {
    if (block.data || !block.code) continue;
    const auto found = std::lower_bound(ordered.blocks.begin(), ordered.blocks.end(), block.id);
    if (found == ordered.blocks.end() || *found != block.id)
      break;  // CheckOffer says what is wrong
    const auto k = static_cast<std::size_t>(found - ordered.blocks.begin());
    try {
      block.data = Decode(codec, table.dtype(), table[block.id], *block.code,
                          ordered.base.empty() ? nullptr : ordered.base[k].get(), allocate);
      block.code.reset();
    } catch (const std::invalid_argument& error) {
      return Unexpected(error.what());
    }
  }
  return std::nullopt;
}

std::optional<OfferFault> CheckOffer(const Offer& offer, const OrderedOffer& ordered,
                                     std::int64_t tokens_per_step, const BlockTable& table) {
  const RoundSpan& span = ordered.span;
  if (!std::equal(ordered.blocks.begin(), ordered.blocks.end(), offer.blocks.begin(),
                  offer.blocks.end(),
                  [](BlockId id, const OfferedBlock& block) { return id == block.id; })) {
    return Unexpected("its blocks are not the ones that were asked for");
  }
  if (offer.span != span) {
    return Unexpected(fmt::format("{} steps from {} instead of {} from {}", offer.span.steps,
                                  offer.span.first_step, span.steps, span.first_step));
  }
  for (const OfferedBlock& block : offer.blocks) {
    const BlockSpec& spec = table[block.id];
    const std::string& name = spec.parts.front().name;
    if (!block.data || block.data->bytes() != spec.buffer_elements * ElementBytes(table.dtype())) {
      return Unexpected(fmt::format("the size of {} is wrong", name));
    }
    if (BlockChecksum(spec, table.dtype(), *block.data) != block.checksum) {
      return OfferFault{RejectReason::kCorrupt,
                        fmt::format("the checksum of {} does not match", name)};
    }
    const double largest = LargestOffered(table.dtype());
    if (!AllWithin(table.dtype(), *block.data, -largest, largest)) {
      return OfferFault{RejectReason::kNotFinite,
                        fmt::format("{} is not finite{}", name,
                                    AllFinite(table.dtype(), *block.data)
                                        ? fmt::format(", or next to it: beyond {:g}", largest)
                                        : "")};
    }
    if (auto fault = CheckMoments(block, ordered, table)) return fault;
  }
  return CheckSteps(offer, span, tokens_per_step);
}

}  // namespace spes::trainer
