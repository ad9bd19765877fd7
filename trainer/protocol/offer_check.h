// What keeps a broken result away from the world.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/protocol/messages.h"
#include "trainer/sync/codec.h"

namespace spes::trainer {

struct OfferFault {
  RejectReason reason = RejectReason::kUnexpected;
  std::string detail;  // one line
};

// What a node was told to offer.
struct OrderedOffer {
  RoundSpan span = {};
  MomentsSent moments = MomentsSent::kNone;
  std::vector<BlockId> blocks = {};  // ascending
  // [blocks]: what the codes are from; empty where it codes without.
  std::vector<SharedBuffer> base = {};
};

// Reads what has come over a wire as codes, if anything, into memory of `allocate`; each code is
// let go of. Why they cannot be read, if so.
std::optional<OfferFault> DecodeOffer(const CodecConfig& codec, const OrderedOffer& ordered,
                                      const BlockTable& table, Offer& offer,
                                      const Allocate& allocate = {});

// Why an offer cannot be used, if so: it is not what was ordered (span, blocks, moments exactly of
// those whose moments were asked for), its sizes are not the table's, its counts cannot be those of
// the ordered steps (records of each step, tokens, routed slots, updates of moments), a checksum
// does not match, a figure or value is not finite or beyond LargestOffered, a second moment is
// below 0.
std::optional<OfferFault> CheckOffer(const Offer& offer, const OrderedOffer& ordered,
                                     std::int64_t tokens_per_step, const BlockTable& table);

// Whether all its blocks are of `table`, so that it has a size.
bool IsOfModel(const Offer& offer, const BlockTable& table);

// What no honest value comes near, and whose square is a number of the type with room to spare: no
// sum over nodes, elements or steps of an optimiser overflows.
double LargestOffered(DType dtype);

}  // namespace spes::trainer
