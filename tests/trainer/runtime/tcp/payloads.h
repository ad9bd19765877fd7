// Messages with as many bytes as a test wants.
#pragma once

#include <cstdint>
#include <memory>

#include "trainer/protocol/messages.h"

namespace spes::trainer {

// `blocks` shared blocks of `floats` float32 each.
std::shared_ptr<const BlockTable> TableOf(int blocks, std::int64_t floats);

// All blocks, filled with numbers that depend on `seed`.
Offer OfferOf(const BlockTable& table, std::int32_t round, std::uint64_t seed);
Update UpdateOf(const BlockTable& table, Version version, std::uint64_t seed);

}  // namespace spes::trainer
