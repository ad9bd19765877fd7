// What must hold for every head, whoever made it up.
#pragma once

#include <memory>
#include <string_view>

#include "trainer/wire/message_codec.h"

namespace spes::trainer {

// False where the head is refused with a WireError of one line; true where it is taken and then the
// message, with a payload of arbitrary bytes, is sent again as the same bytes (but for what is not
// printable in texts), has the size that is charged, and took no more memory than its blocks have.
// Throws std::logic_error where that does not hold.
bool TakesHead(std::string_view head, const std::shared_ptr<const BlockTable>& table,
               const WireLimits& limits = {});

}  // namespace spes::trainer
