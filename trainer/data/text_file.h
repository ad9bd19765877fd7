// Text from plain and gzip files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace spes::trainer {

// The files one behind the other, as they are; gzip (also of several members, and dictzip) is
// recognised by its first bytes, whatever the name. With `limit` > 0 only the first `limit` bytes
// of the whole: reading stops there. Throws std::invalid_argument, one line that names the file,
// when one is absent, unreadable, empty, or ends within its gzip stream or has a wrong checksum (as
// far as it was read).
std::string ReadText(const std::vector<std::string>& files, std::int64_t limit = 0);

}  // namespace spes::trainer
