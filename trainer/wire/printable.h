// Texts from elsewhere that people will read: in a log, a terminal, an error message.
#pragma once

#include <string>
#include <string_view>

namespace spes::trainer {

// `text` with each byte replaced by '?' that is not part of a printable character in UTF-8: control
// characters (line ends and tabs too), marks that turn the direction of what follows, and whatever
// is no UTF-8. As long as before, one line.
std::string Printable(std::string_view text);

}  // namespace spes::trainer
