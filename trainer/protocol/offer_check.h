// What keeps a broken result away from the world.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trainer/protocol/messages.h"

namespace spes::trainer {

struct OfferFault {
  RejectReason reason = RejectReason::kUnexpected;
  std::string detail;  // one line
};

// Why an offer cannot be used, if so: other steps of the same round than `span` has, blocks other
// than `asked` (ascending), sizes other than the table's, a checksum that does not match, a value
// that is not finite. Unless the reason is kUnexpected, all its block ids are of `table`.
std::optional<OfferFault> CheckOffer(const Offer& offer, const RoundSpan& span,
                                     const std::vector<BlockId>& asked, const BlockTable& table);

}  // namespace spes::trainer
