// What keeps a broken result away from the world.
#pragma once

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

// Reads what has come over a wire as codes, if anything. `asked` (ascending) and `base` [asked]:
// what the codes are from; empty where they are from nothing. Why they cannot be read, if so.
std::optional<OfferFault> DecodeOffer(const CodecConfig& codec, const std::vector<BlockId>& asked,
                                      const std::vector<SharedBuffer>& base,
                                      const BlockTable& table, Offer& offer);

// Why an offer cannot be used, if so: other steps of the same round than `span` has, blocks other
// than `asked` (ascending), sizes other than the table's, a checksum that does not match, a value
// that is not finite. Unless the reason is kUnexpected, all its block ids are of `table`.
std::optional<OfferFault> CheckOffer(const Offer& offer, const RoundSpan& span,
                                     const std::vector<BlockId>& asked, const BlockTable& table);

}  // namespace spes::trainer
