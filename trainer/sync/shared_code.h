// A block's code: bytes that are never written again, wherever they lie.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "trainer/sync/buffer.h"

namespace spes::trainer {

// Null: there is none. Keeps what the view is of.
using SharedCode = std::shared_ptr<const std::string_view>;

SharedCode MakeCode(std::string text);
SharedCode MakeCode(SharedBuffer bytes);

}  // namespace spes::trainer
